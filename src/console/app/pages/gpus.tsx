/** The GPUs of every cluster that a person sees: free, in use, unavailable, by cluster and by node. */

import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { describeFreeBlocks, describeGpuUsage, gpuUsage } from '../../../domain/clusters/gpu-usage.ts';
import { count } from '../count.ts';
import { Empty, Loaded, NoClusters, Page, Panel, Problem } from '../parts/page.tsx';
import { GpuHoursPanel } from '../parts/people/gpu-hours.tsx';
import { HoldingJobs, HoldingPods, WaitingJobs } from '../parts/people/jobs.tsx';
import { type Column, Table, Two } from '../parts/table.tsx';
import { Text } from '../parts/text.tsx';
import { type ClusterItem, type Job, readClusters, readUsage, type Usage } from '../reads.ts';
import { useWho } from '../who.tsx';

type Machine = Usage['machines'][number];

/** A cluster with its nodes, or one of its nodes. */
interface Row {
  cluster: ClusterItem;
  machines: readonly Machine[];
  jobs: readonly Job[];
  links?: Usage['links'] | undefined;
}

export default function GpusPage() {
  const who = useWho();
  const clusters = useQuery(readClusters(who));
  const inService = (clusters.data ?? []).filter(({ status }) => status.lifecycleState !== 'released');
  const usages = useQueries({ queries: inService.map(({ id }) => readUsage(id, who.orgID)) });
  const rows = inService.map((cluster, index): Row => {
    const { machines = [], jobs = [], links } = usages[index]?.data ?? {};
    return { cluster, machines, jobs, links };
  });
  const used = inService.flatMap(({ spec }, index) => {
    const usage = usages[index]?.data;
    return usage ? [{ cluster: spec.name, usage }] : [];
  });
  const failed = usages.find(({ error }) => error);
  // A sum of some clusters is not said.
  const isWhole = clusters.data !== undefined && usages.every(({ data }) => data);
  const isCurrent = isWhole && !clusters.error && !failed;
  return (
    <Page title="GPUs" isWide sentence={isCurrent && sentenceOf(rows)}>
      {failed && (
        <Problem error={failed.error} isOld={failed.data !== undefined} again={() => void failed.refetch()} />
      )}
      <Loaded of={clusters}>
        {() => (inService.length === 0 ? <NoClusters /> : isWhole && <Tables rows={rows} used={used} />)}
      </Loaded>
    </Page>
  );
}

function usageOf(machines: readonly Machine[]) {
  return gpuUsage(
    machines.map(({ gpu_count: gpuCount = 0, gpus_in_use: gpusInUse, takes_work: takesWork }) => {
      return { gpuCount, gpusInUse, takesWork: takesWork ?? 'unknown' };
    }),
  );
}

function sentenceOf(rows: readonly Row[]): string {
  const machines = rows.flatMap((row) => row.machines);
  const usage = usageOf(machines);
  const blocks = describeFreeBlocks(usage);
  const where = `on ${count(machines.length, 'node')} of ${count(rows.length, 'cluster')}`;
  return `${describeGpuUsage(usage)} ${where}${blocks === undefined ? '' : `: ${blocks}`}.`;
}

interface TablesOptions {
  rows: readonly Row[];
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

const ofCluster: Column<Row> = {
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

const ofNode: Column<Row> = {
  name: 'Node',
  cell: ({ machines: [one] }) => (
    <Two first={<div>{one?.name}</div>} second={one?.reason && <Text of={one.reason} />} />
  ),
};

/** Whose jobs hold GPUs of a node. */
const ofHolders: Column<Row> = {
  name: 'Held by',
  cell: ({ jobs }) =>
    jobs.map(({ id, person, user }) => (
      <div key={id}>
        {person ?? user} ({id})
      </div>
    )),
};

const counts: Column<Row>[] = [
  { name: 'Free', isNumber: true, cell: ({ machines }) => usageOf(machines).free },
  { name: 'In use', isNumber: true, cell: ({ machines }) => usageOf(machines).inUse },
  { name: 'Unavailable', isNumber: true, cell: ({ machines }) => usageOf(machines).away },
  { name: 'Unknown', isNumber: true, cell: ({ machines }) => usageOf(machines).unknown },
  { name: 'GPUs', isNumber: true, cell: ({ machines }) => usageOf(machines).total },
];
