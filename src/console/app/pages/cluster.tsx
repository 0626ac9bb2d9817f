/** One cluster: its nodes, its GPUs, its storage, and whether its parts work. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { components } from '../../../api/generated/platform.ts';
import { formatBytes } from '../../../domain/units.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Gpus, gpusOf, machineState } from '../parts/gpus.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { Reservations } from '../parts/reservations.tsx';
import { State } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Age, Reported } from '../parts/time.tsx';
import {
  type Machine,
  readCluster,
  readClusters,
  readMachines,
  readOptions,
  readUsage,
  type Usage,
} from '../reads.ts';
import { useWho } from '../who.tsx';
import { Lifecycle } from './clusters.tsx';

type Options = components['schemas']['ClusterOptions'];
type Condition = components['schemas']['Condition'];

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
  const name = cluster.data?.spec.name ?? 'Cluster';
  return (
    <Page
      title={name}
      sentence={usage.data && options.data && `${gpusOf(usage.data)}. ${reportOf(options.data)}`}
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
            tools={
              <AsCommand
                api="Platform"
                cli={`andromeda clusters show ${name}`}
                operation={`GET /clusters/${clusterId}/options?businessOrgId=${orgID}`}
              />
            }
          >
            <dl className="facts">
              <Fact name="State" value={<Lifecycle cluster={known} />} />
              <Fact name="Site" value={known.spec.site.name} />
              <Fact name="Kubernetes" value={known.spec.version || '–'} />
              <Fact name="Kubelet" value={known.status.kubeletVersion || '–'} />
              <Fact name="Configuration" value={`version ${known.spec.schedulerGeneration}`} />
            </dl>
            <Loaded of={options}>{(data) => <Parts options={data} clusterId={clusterId} />}</Loaded>
          </Panel>
        )}
      </Loaded>
      <Reservations clusterId={clusterId} />
      <Machines clusterId={clusterId} name={name} usage={usage.data} />
    </Page>
  );
}

function Machines({ clusterId, name, usage }: { clusterId: string; name: string; usage: Usage | undefined }) {
  const { orgID } = useWho();
  const { filter } = useSearch({ from: '/frame/clusters/$clusterId' });
  const navigate = useNavigate({ from: '/clusters/$clusterId' });
  const machines = useQuery(readMachines(clusterId, orgID));
  const onFilter = (text: string) => void navigate({ search: (old) => withFilter(old, text), replace: true });
  return (
    <Panel
      title="Machines"
      tools={
        <AsCommand
          api="Platform"
          cli={`andromeda machines --cluster ${name}`}
          operation={`GET /clusters/${clusterId}/machines?businessOrgId=${orgID}`}
        />
      }
    >
      <Loaded of={machines}>
        {(list) =>
          list.length === 0 ? (
            <Empty>No machines reported yet.</Empty>
          ) : (
            <>
              {usage && <Gpus usage={usage} />}
              <MachineTable machines={list} usage={usage} filter={filter ?? ''} onFilter={onFilter} />
            </>
          )
        }
      </Loaded>
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

function Fact({ name, value }: { name: string; value: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function withFilter<Search extends { filter?: string }>({ filter: _old, ...rest }: Search, filter: string) {
  return filter === '' ? rest : { ...rest, filter };
}

function Parts({
  options: { scheduler, storage, observedAt },
  clusterId,
}: {
  options: Options;
  clusterId: string;
}) {
  const kinds = (['ceph', 'weka', 'nfs'] as const).filter((one) => storage.configured[one] === 'configured');
  return (
    <dl className="facts">
      <Fact name="Last report" value={<Reported clusterId={clusterId} at={observedAt} />} />
      <Fact name="Scheduler" value={<Ready condition={scheduler.ready} />} />
      <Fact
        name="Storage"
        value={
          <>
            <Ready condition={storage.ready} /> {kinds.join(', ') || 'none configured'}
          </>
        }
      />
      {storage.quotaBytes !== undefined && <Fact name="Ceph quota" value={formatBytes(storage.quotaBytes)} />}
    </dl>
  );
}

function Ready({ condition }: { condition: Condition | undefined }) {
  if (!condition) return <State kind="none">Not reported</State>;
  const { status, reason, message } = condition;
  if (status === 'True') return <State kind="good">Working</State>;
  const kind = status === 'False' ? 'bad' : 'none';
  return (
    <>
      <State kind={kind}>{reason ?? 'Unknown'}</State> {message && <span>{message}</span>}
    </>
  );
}

function MachineTable({
  machines,
  usage,
  filter,
  onFilter,
}: {
  machines: readonly Machine[];
  usage: Usage | undefined;
  filter: string;
  onFilter: (text: string) => void;
}) {
  const used = new Map(usage?.machines.map((one) => [one.id, one]));
  return (
    <Table
      name="machines"
      rows={machines}
      id={(one) => one.id}
      text={(one) =>
        `${one.name} ${machineState(one).word} ${one.hardware.gpu_model ?? ''} ${used.get(one.id)?.reason ?? ''}`
      }
      filter={filter}
      onFilter={onFilter}
      columns={[
        { name: 'Name', cell: (one) => one.name },
        {
          name: 'State',
          cell: (one) => {
            const { kind, word } = machineState(one);
            const reason = used.get(one.id)?.reason;
            return (
              <div className="two">
                <div>
                  <State kind={kind}>{word}</State>
                </div>
                {reason !== undefined && <span>{reason}</span>}
              </div>
            );
          },
        },
        { name: 'In use', isNumber: true, cell: (one) => used.get(one.id)?.gpus_in_use ?? 'unknown' },
        { name: 'GPUs', isNumber: true, cell: (one) => one.hardware.gpu_count ?? '–' },
        { name: 'Model', cell: (one) => one.hardware.gpu_model ?? '–' },
        { name: 'Cores', isNumber: true, cell: (one) => one.hardware.cpu_cores ?? '–' },
        {
          name: 'Memory',
          isNumber: true,
          cell: (one) => (one.hardware.memory_gib ? `${one.hardware.memory_gib} GiB` : '–'),
        },
        { name: 'Reported', cell: (one) => (one.observed ? <Age at={one.observed.observed_at} /> : 'never') },
      ]}
    />
  );
}
