/** The GPUs of every cluster that a person sees: free, in use, unavailable, by cluster and by node. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { describeFreeBlocks, describeGpuUsage, gpuUsage } from '../../../domain/clusters/gpu-usage.ts';
import { allOf, Empty, Loaded, NoClusters, Page, Panel, Select, said, together } from '../parts/page.tsx';
import { HoldingJobs, HoldingPods, WaitingJobs } from '../parts/people/jobs.tsx';
import { type Column, Table, Two } from '../parts/table.tsx';
import { count, Text } from '../parts/values.tsx';
import {
  type ClusterItem,
  type GpuHours,
  type Job,
  readClusters,
  readGpuHours,
  readUsage,
  type Usage,
  useWho,
} from '../reads.ts';

type MachineUsage = Usage['machines'][number];

interface ClusterRow {
  cluster: ClusterItem;
  machines: readonly MachineUsage[];
  jobs: readonly Job[];
  links?: Usage['links'] | undefined;
}

export default function GpusPage() {
  const who = useWho();
  const clusters = useQuery(readClusters(who));
  const inService = (clusters.data ?? []).filter(({ status }) => status.lifecycleState !== 'released');
  const usages = allOf(useQueries({ queries: inService.map(({ id }) => readUsage(id, who.orgID)) }));
  const both = together({ clusters, usages });
  const rows = inService.map((cluster, index): ClusterRow => {
    const { machines = [], jobs = [], links } = usages.data?.[index] ?? {};
    return { cluster, machines, jobs, links };
  });
  const used = inService.flatMap(({ spec }, index) => {
    const usage = usages.data?.[index];
    return usage ? [{ cluster: spec.name, usage }] : [];
  });
  return (
    <Page title="GPUs" isWide sentence={said(both, () => sentenceOf(rows))}>
      <Loaded of={both}>
        {() => (inService.length === 0 ? <NoClusters /> : <Tables rows={rows} used={used} />)}
      </Loaded>
    </Page>
  );
}

function usageOf(machines: readonly MachineUsage[]) {
  return gpuUsage(
    machines.map(({ gpu_count: gpuCount = 0, gpus_in_use: gpusInUse, takes_work: takesWork }) => {
      return { gpuCount, gpusInUse, takesWork: takesWork ?? 'unknown' };
    }),
  );
}

function sentenceOf(rows: readonly ClusterRow[]): string {
  const machines = rows.flatMap((row) => row.machines);
  const usage = usageOf(machines);
  const blocks = describeFreeBlocks(usage);
  const where = `on ${count(machines.length, 'node')} of ${count(rows.length, 'cluster')}`;
  return `${describeGpuUsage(usage)} ${where}${blocks === undefined ? '' : `: ${blocks}`}.`;
}

interface TablesOptions {
  rows: readonly ClusterRow[];
  used: readonly { cluster: string; usage: Usage }[];
}

function Tables({ rows, used }: TablesOptions) {
  const nodes = rows.flatMap(({ cluster, machines, jobs }) =>
    machines.map((one) => ({
      cluster,
      machines: [one],
      jobs: jobs.filter((job) => job.gpus > 0 && job.machines.includes(one.name)),
    })),
  );
  return (
    <>
      <Panel title="Clusters">
        <Table
          name="clusters"
          rows={rows}
          id={({ cluster }) => cluster.id}
          columns={[ofCluster, ...counts]}
        />
      </Panel>
      <Panel title="Jobs with GPUs">
        <HoldingJobs of={used} />
      </Panel>
      <WaitingJobs of={used} />
      <HoldingPods of={used} />
      <Panel title="Nodes">
        <Table
          name="nodes"
          rows={nodes}
          id={({ machines: [one] }) => one?.id ?? ''}
          text={({ cluster, machines: [one] }) => `${cluster.spec.name} ${one?.name} ${one?.reason ?? ''}`}
          isInAddress
          columns={[ofNode, ofCluster, ofHolders, ...counts]}
          none={<Empty>No machines reported yet.</Empty>}
        />
      </Panel>
      <GpuHoursPanel />
    </>
  );
}

const ofCluster: Column<ClusterRow> = {
  name: 'Cluster',
  cell: ({ cluster: { id, spec }, links = [] }) => (
    <>
      <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
        {spec.name}
      </Link>
      {links.map(({ name, url }) => (
        <div key={name} className="small">
          <a href={url} rel="noreferrer">
            {name}
          </a>
        </div>
      ))}
    </>
  ),
};

const ofNode: Column<ClusterRow> = {
  name: 'Node',
  cell: ({ machines: [one] }) => (
    <Two first={<div>{one?.name}</div>} second={one?.reason && <Text of={one.reason} />} />
  ),
};

const ofHolders: Column<ClusterRow> = {
  name: 'Held by',
  cell: ({ jobs }) =>
    jobs.map(({ id, person, user }) => (
      <div key={id}>
        {person ?? user} ({id})
      </div>
    )),
};

const counts: Column<ClusterRow>[] = [
  { name: 'Free', isNumber: true, cell: ({ machines }) => usageOf(machines).free },
  { name: 'In use', isNumber: true, cell: ({ machines }) => usageOf(machines).inUse },
  { name: 'Unavailable', isNumber: true, cell: ({ machines }) => usageOf(machines).away },
  { name: 'Unknown', isNumber: true, cell: ({ machines }) => usageOf(machines).unknown },
  { name: 'GPUs', isNumber: true, cell: ({ machines }) => usageOf(machines).total },
];

type Hours = GpuHours['items'][number];

const hoursColumns: Column<{ cluster: string; person: Hours['people'][number] }>[] = [
  {
    name: 'Person',
    cell: ({ person }) => <Two first={<b>{person.person ?? person.user}</b>} second={person.user} />,
  },
  { name: 'Cluster', cell: ({ cluster }) => cluster },
  { name: 'GPU-hours', isNumber: true, cell: ({ person }) => person.gpu_hours.toFixed(2) },
];

const spans = [7, 30, 90].map((days) => [days, `${days} days`] as const);
/** The service updates the figures no more often. */
const refetchInterval = 600_000;

/** Empty for a person who may not list the organization's clusters. */
function GpuHoursPanel() {
  const { orgID, seesClusters } = useWho();
  const [days, setDays] = useState<number>(30);
  const hours = useQuery({ ...readGpuHours(orgID, days), enabled: seesClusters, refetchInterval });
  if (!seesClusters) return null;
  const rows = (hours.data?.items ?? []).flatMap(({ cluster_name: cluster, people }) =>
    people.map((person) => ({ cluster, person })),
  );
  return (
    <Panel
      title="GPU-hours"
      cli={`andromeda gpu-hours --days ${days}`}
      operation={`GET /gpu-hours?businessOrgId=${orgID}&days=${days}`}
    >
      <p>
        <Select id="gpu-days" label="Of the last" value={days} onChange={setDays} options={spans} />
      </p>
      <Loaded of={hours}>
        {({ items }) => (
          <>
            {items.map((one) => (
              <ClusterHours key={one.cluster_id} hours={one} />
            ))}
            <Table
              name="gpu-hours"
              rows={rows}
              id={({ cluster, person }) => `${cluster} ${person.user}`}
              text={({ cluster, person }) => `${cluster} ${person.user} ${person.person ?? ''}`}
              columns={hoursColumns}
              none={<p className="soft">Nobody that you may see has used a GPU in that time.</p>}
            />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function ClusterHours({ hours }: { hours: Hours }) {
  const {
    cluster_name: name,
    source,
    first_day: since,
    gpu_hours: all,
    members_gpu_hours: members,
    limits,
    days,
  } = hours;
  if (source === undefined) return <p className="soft small">{name}: nothing is known yet.</p>;
  return (
    <>
      <p>
        <b>{name}</b>: {all.toFixed(2)} GPU-hours since {since}, of members {members.toFixed(2)}
        {source === 'observed' && ', as observed, since its Slurm has no accounting'}.
      </p>
      <Days name={name} days={days} />
      {limits.length > 0 && (
        <details className="small">
          <summary>{count(limits.length, 'limit')} of its Slurm account</summary>
          <ul>
            {limits.map(({ user, name: limit, value, lab_file: wanted }) => (
              <li key={`${user} ${limit}`}>
                {user ?? 'account'}: {limit} {value || 'unset'}
                {wanted !== undefined && `, set by hand; the lab file has ${wanted}`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Days({ name, days }: { name: string; days: Hours['days'] }) {
  const most = Math.max(...days.map(({ gpu_hours: of }) => of), 0.01);
  const [width, height] = [6, 40];
  return (
    <svg
      className="gpu-days"
      role="img"
      aria-label={`GPU-hours of ${name} by day, at most ${most.toFixed(1)} on one`}
      viewBox={`0 0 ${days.length * width} ${height}`}
      width={days.length * width}
      height={height}
    >
      {days.map(({ day, gpu_hours: of }, index) => {
        const bar = Math.max(1, (of / most) * height);
        return (
          <rect key={day} x={index * width} y={height - bar} width={width - 1} height={bar}>
            <title>{`${day}: ${of.toFixed(2)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
