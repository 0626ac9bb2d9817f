/** Clusters at a glance. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { AsCommand } from '../parts/copy.tsx';
import { Gpus, gpusOf } from '../parts/gpus.tsx';
import { Loaded, NoClusters, Page, Panel } from '../parts/page.tsx';
import { type Kind, State } from '../parts/state.tsx';
import { Reported } from '../parts/time.tsx';
import { type ClusterItem, readClusters, readOptions, readUsage } from '../reads.ts';
import { useWho } from '../who.tsx';

export function ClustersPage() {
  const clusters = useQuery(readClusters(useWho()));
  return (
    <Page title="Clusters" sentence={clusters.data && <Sentence clusters={clusters.data} />}>
      <Loaded of={clusters}>
        {(list) =>
          list.length === 0 ? (
            <NoClusters />
          ) : (
            <div className="cards">
              {list.map((cluster) => (
                <ClusterCard key={cluster.id} cluster={cluster} />
              ))}
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

function Sentence({ clusters }: { clusters: readonly ClusterItem[] }) {
  const active = clusters.filter(({ status }) => status.lifecycleState === 'active').length;
  if (clusters.length === 0) return <>You cannot see any clusters.</>;
  return (
    <>
      {active} of {clusters.length} {clusters.length === 1 ? 'cluster is' : 'clusters are'} in service.
    </>
  );
}

const lifecycleKinds: Record<ClusterItem['status']['lifecycleState'], Kind> = {
  provisioning: 'busy',
  active: 'good',
  releasing: 'busy',
  released: 'none',
};

const lifecycleNames: Record<ClusterItem['status']['lifecycleState'], string> = {
  provisioning: 'Being set up',
  active: 'In service',
  releasing: 'Being released',
  released: 'Released',
};

export function Lifecycle({ cluster }: { cluster: ClusterItem }) {
  const { lifecycleState } = cluster.status;
  return <State kind={lifecycleKinds[lifecycleState]}>{lifecycleNames[lifecycleState]}</State>;
}

function ClusterCard({ cluster }: { cluster: ClusterItem }) {
  const { orgID } = useWho();
  const { id, spec } = cluster;
  const usage = useQuery(readUsage(id, orgID));
  const options = useQuery(readOptions(id, orgID));
  const value = options.data?.scheduler.configured.value;
  return (
    <Panel
      title={
        <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
          {spec.name}
        </Link>
      }
      tools={
        <AsCommand
          api="Platform"
          cli={`andromeda clusters show ${spec.name}`}
          operation={`GET /clusters/${id}?businessOrgId=${orgID}`}
        />
      }
    >
      <p>
        <Lifecycle cluster={cluster} />{' '}
        <span className="soft">
          {value === 'sunk' ? 'Slurm' : value === 'kubernetes' ? 'Kubernetes' : ''} · {spec.site.name}
        </span>
      </p>
      <Loaded of={usage}>
        {(known) => (
          <>
            <p className="figure">{gpusOf(known)}</p>
            <Gpus usage={known} />
          </>
        )}
      </Loaded>
      <p className="soft small">
        {options.data && (
          <>
            Last report: <Reported clusterId={id} at={options.data.observedAt} />
          </>
        )}
      </p>
    </Panel>
  );
}
