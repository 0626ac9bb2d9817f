/** Clusters at a glance. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { count } from '../count.ts';
import { Gpus, gpusOf } from '../parts/gpus.tsx';
import { Loaded, NoClusters, Page, Panel, said } from '../parts/page.tsx';
import { type Kind, State } from '../parts/state.tsx';
import { LastReport } from '../parts/time.tsx';
import { type ClusterItem, readClusters, readUsage } from '../reads.ts';
import { useWho } from '../who.tsx';

export function ClustersPage() {
  const clusters = useQuery(readClusters(useWho()));
  return (
    <Page title="Clusters" sentence={said(clusters, (list) => <Sentence clusters={list} />)}>
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
  return `${active} of ${count(clusters.length, 'cluster is', 'clusters are')} in service.`;
}

const lifecycles: Record<ClusterItem['status']['lifecycleState'], [Kind, string]> = {
  provisioning: ['busy', 'Being set up'],
  active: ['good', 'In service'],
  releasing: ['busy', 'Being released'],
  released: ['none', 'Released'],
};

export function Lifecycle({ cluster }: { cluster: ClusterItem }) {
  const [kind, name] = lifecycles[cluster.status.lifecycleState];
  return <State kind={kind}>{name}</State>;
}

function ClusterCard({ cluster }: { cluster: ClusterItem }) {
  const { orgID } = useWho();
  const { id, spec } = cluster;
  const usage = useQuery(readUsage(id, orgID));
  const value = usage.data?.scheduler;
  return (
    <Panel
      title={
        <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
          {spec.name}
        </Link>
      }
      cli={`andromeda clusters show ${spec.name}`}
      operation={`GET /clusters/${id}?businessOrgId=${orgID}`}
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
            <LastReport clusterId={id} at={known.observed_at} />
          </>
        )}
      </Loaded>
    </Panel>
  );
}
