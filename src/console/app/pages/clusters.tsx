/** The list of clusters, and the page of one. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { components } from '../../../api/generated/platform.ts';
import { formatBytes } from '../../../domain/units.ts';
import { Gpus, gpusOf, MachineState, machineState, Ready } from '../parts/gpus.tsx';
import {
  Empty,
  Facts,
  Loaded,
  NoClusters,
  Page,
  Panel,
  Problem,
  type Reading,
  said,
  together,
} from '../parts/page.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age, count, type Kind, LastReport, Reported, State } from '../parts/values.tsx';
import {
  type ClusterItem,
  type Machine,
  readCluster,
  readClusters,
  readMachines,
  readOptions,
  readReservations,
  readUsage,
  type Usage,
  useWho,
} from '../reads.ts';

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

function Lifecycle({ cluster }: { cluster: ClusterItem }) {
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

type Options = components['schemas']['ClusterOptions'];

export function ClusterPage() {
  const clusters = useQuery(readClusters(useWho()));
  const { clusterId } = useParams({ from: '/frame/clusters/$clusterId' });
  const id = clusterId.toLowerCase();
  if (clusters.data?.some((one) => one.id === id)) return <Cluster clusterId={id} />;
  return (
    <Page title="Cluster">
      <Loaded of={clusters}>
        {() => (
          <Empty action={<Link to="/clusters">Clusters</Link>}>
            There is no such cluster, or you do not have access to it.
          </Empty>
        )}
      </Loaded>
    </Page>
  );
}

function Cluster({ clusterId }: { clusterId: string }) {
  const { orgID, membership } = useWho();
  const cluster = useQuery(readCluster(clusterId, orgID));
  const usage = useQuery(readUsage(clusterId, orgID));
  const options = useQuery(readOptions(clusterId, orgID));
  const both = together({ usage, options });
  const name = cluster.data?.spec.name ?? 'Cluster';
  return (
    <Page
      title={name}
      sentence={said(both, (known) => `${gpusOf(known.usage)}. ${reportOf(known.options)}`)}
      actions={
        <>
          {options.data?.scheduler.configured.value !== 'kubernetes' && (
            <Link to="/clusters/$clusterId/slurm" params={{ clusterId }}>
              Slurm configuration
            </Link>
          )}
          {membership && (
            <Link to="/clusters/$clusterId/people" params={{ clusterId }}>
              Who has access
            </Link>
          )}
        </>
      }
    >
      <Loaded of={cluster}>
        {(known) => (
          <Panel
            title="Status"
            cli={`andromeda clusters show ${name}`}
            operation={`GET /clusters/${clusterId}/options?businessOrgId=${orgID}`}
          >
            <ClusterFacts cluster={known} />
            <Loaded of={options}>{(data) => <Parts options={data} clusterId={clusterId} />}</Loaded>
          </Panel>
        )}
      </Loaded>
      <Reservations clusterId={clusterId} />
      <Machines clusterId={clusterId} name={name} usage={usage} />
    </Page>
  );
}

function ClusterFacts({ cluster }: { cluster: ClusterItem }) {
  const { spec, status } = cluster;
  return (
    <Facts
      of={{
        State: <Lifecycle cluster={cluster} />,
        Site: spec.site.name,
        Kubernetes: spec.version || '–',
        Kubelet: status.kubeletVersion || '–',
        Configuration: `version ${spec.schedulerGeneration}`,
      }}
    />
  );
}

function Machines({ clusterId, name, usage }: { clusterId: string; name: string; usage: Reading<Usage> }) {
  const { orgID } = useWho();
  const machines = useQuery(readMachines(clusterId, orgID));
  return (
    <Panel
      title="Machines"
      cli={`andromeda machines --cluster ${name}`}
      operation={`GET /clusters/${clusterId}/machines?businessOrgId=${orgID}`}
    >
      <Loaded of={together({ machines, usage })}>
        {(known) => (
          <>
            {known.machines.length > 0 && <Gpus usage={known.usage} />}
            <MachineTable machines={known.machines} usage={known.usage} />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Reservations({ clusterId }: { clusterId: string }) {
  const who = useWho();
  const all = useQuery(readReservations(who, clusterId));
  if (all.error) return <Problem error={all.error} again={() => void all.refetch()} />;
  const reserved = all.data?.find((one) => one.cluster_id === clusterId);
  if (!reserved) return null;
  return (
    <Panel title="Reserved for you" operation={`GET /organizations/${who.orgID}/reservations`}>
      <p>
        <State kind="good">{count(reserved.node_count, 'node')}</State>{' '}
        <span className="soft">{reserved.id}</span>
      </p>
    </Panel>
  );
}

function reportOf({ state, observedAt, scheduler }: Options): string {
  const { status = 'True' } = scheduler.ready ?? {};
  if (state === 'available') return status === 'True' ? 'It reports normally.' : 'It reports a fault.';
  return observedAt === undefined
    ? 'It has not reported yet.'
    : 'It has not reported recently, so this may be outdated.';
}

function Parts({ options, clusterId }: { options: Options; clusterId: string }) {
  const { scheduler, storage, observedAt } = options;
  const { quotaBytes: quota } = storage;
  const kinds = (['ceph', 'weka', 'nfs'] as const).filter((one) => storage.configured[one] === 'configured');
  return (
    <Facts
      of={{
        'Last report': <Reported clusterId={clusterId} at={observedAt} />,
        Scheduler: <Ready condition={scheduler.ready} />,
        Storage: (
          <>
            <Ready condition={storage.ready} /> {kinds.join(', ') || 'none configured'}
          </>
        ),
        'Ceph quota': quota && formatBytes(quota),
      }}
    />
  );
}

function MachineTable({ machines, usage }: { machines: readonly Machine[]; usage: Usage | undefined }) {
  const used = new Map(usage?.machines.map((one) => [one.id, one]));
  return (
    <Table
      name="machines"
      rows={machines}
      id={(one) => one.id}
      text={(one) =>
        `${one.name} ${machineState(one).word} ${one.hardware.gpu_model ?? ''} ${used.get(one.id)?.reason ?? ''}`
      }
      isInAddress
      columns={machineColumns(used)}
      none={<Empty>No machines reported yet.</Empty>}
    />
  );
}

function machineColumns(used: ReadonlyMap<string, Usage['machines'][number]>): Column<Machine>[] {
  return [
    { name: 'Name', cell: (one) => one.name },
    {
      name: 'State',
      cell: (one) => <MachineState {...machineState(one)} reason={used.get(one.id)?.reason} />,
    },
    { name: 'In use', isNumber: true, cell: (one) => used.get(one.id)?.gpus_in_use ?? 'unknown' },
    { name: 'GPUs', isNumber: true, cell: ({ hardware }) => hardware.gpu_count ?? '–' },
    { name: 'Model', cell: ({ hardware }) => hardware.gpu_model ?? '–' },
    { name: 'Cores', isNumber: true, cell: ({ hardware }) => hardware.cpu_cores ?? '–' },
    {
      name: 'Memory',
      isNumber: true,
      cell: ({ hardware: { memory_gib: memory } }) => (memory ? `${memory} GiB` : '–'),
    },
    { name: 'Reported', cell: (one) => (one.observed ? <Age at={one.observed.observed_at} /> : 'never') },
  ];
}
