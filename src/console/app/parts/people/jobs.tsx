/** Running and pending Slurm jobs: their owners, and the login command into one's own jobs. */
import { useQuery } from '@tanstack/react-query';
import {
  type ClusterUse,
  type Job,
  type PendingJob,
  readUsage,
  type SshAccess,
  type Usage,
  useWho,
} from '../../reads.ts';
import { CopyLine, Loaded, Panel } from '../page.tsx';
import { type Column, Table, Two } from '../table.tsx';
import { Age, count, Text } from '../values.tsx';
import { aliasOf, sshLine } from './uses.tsx';

interface JobRow<Of = Job> {
  cluster: string;
  job: Of;
}

const sharedColumns: Column<JobRow | JobRow<PendingJob>>[] = [
  { name: 'Person', cell: ({ job }) => <Two first={<b>{job.person ?? job.user}</b>} second={job.user} /> },
  { name: 'Job', cell: ({ job }) => <Two first={<Text of={job.name} />} second={job.id} /> },
  { name: 'Cluster', cell: ({ cluster }) => cluster },
];

const columns: Column<JobRow>[] = [
  ...sharedColumns,
  { name: 'Nodes', cell: ({ job }) => job.machines.join(', ') },
  { name: 'GPUs', isNumber: true, cell: ({ job }) => job.gpus },
  { name: 'Since', cell: ({ job: { started_at: at } }) => (at === undefined ? '–' : <Age at={at} />) },
  { name: 'Until', cell: ({ job: { ends_at: at } }) => (at === undefined ? 'no limit' : <Age at={at} />) },
];

const idOf = ({ cluster, job }: JobRow | JobRow<PendingJob>) => `${cluster} ${job.id}`;
const textOf = ({ cluster, job }: JobRow | JobRow<PendingJob>) =>
  `${cluster} ${job.id} ${job.name} ${job.user} ${job.person ?? ''}`;

type ClusterUsages = readonly { cluster: string; usage: Usage }[];

export function HoldingJobs({ of }: { of: ClusterUsages }) {
  const rows = of.flatMap(({ cluster, usage: { jobs = [] } }) =>
    jobs.filter(({ gpus }) => gpus > 0).map((job) => ({ cluster, job })),
  );
  const unknown = of.flatMap(({ cluster, usage }) =>
    usage.scheduler === 'sunk' && !usage.jobs ? [cluster] : [],
  );
  const hidden = of.reduce((sum, { usage }) => sum + (usage.other_jobs?.gpus ?? 0), 0);
  return (
    <>
      <Table
        name="jobs"
        rows={rows}
        id={idOf}
        text={textOf}
        columns={columns}
        none={<p className="soft">No job that you may see holds GPUs.</p>}
      />
      {unknown.length > 0 && (
        <p className="soft small">Which jobs run on {unknown.join(', ')} is not known at the moment.</p>
      )}
      {hidden > 0 && (
        <p className="soft small">Jobs that you may not see hold {count(hidden, 'more GPU')}.</p>
      )}
    </>
  );
}

const waitingColumns: Column<JobRow<PendingJob>>[] = [
  ...sharedColumns,
  { name: 'GPUs', isNumber: true, cell: ({ job }) => job.gpus },
  { name: 'Ahead', isNumber: true, cell: ({ job }) => job.ahead },
  { name: 'Why', cell: ({ job }) => job.reason },
  { name: 'Expected', cell: ({ job: { expected_at: at } }) => (at === undefined ? '–' : <Age at={at} />) },
];

export function WaitingJobs({ of }: { of: ClusterUsages }) {
  const rows = of.flatMap(({ cluster, usage: { pending_jobs: jobs = [] } }) =>
    jobs.map((job) => ({ cluster, job })),
  );
  const hidden = of.reduce((sum, { usage }) => sum + (usage.other_jobs?.pending ?? 0), 0);
  if (rows.length === 0 && hidden === 0) return null;
  return (
    <Panel title="Waiting jobs">
      <Table name="waiting" rows={rows} id={idOf} text={textOf} columns={waitingColumns} />
      {hidden > 0 && <p className="soft small">{count(hidden, 'more job')} that you may not see wait.</p>}
    </Panel>
  );
}

const podColumns: Column<{ cluster: string; pod: NonNullable<Usage['pods']>[number] }>[] = [
  { name: 'Pod', cell: ({ pod }) => <Two first={<b>{pod.name}</b>} second={pod.namespace} /> },
  { name: 'Cluster', cell: ({ cluster }) => cluster },
  { name: 'Node', cell: ({ pod }) => pod.machine },
  { name: 'GPUs', isNumber: true, cell: ({ pod }) => pod.gpus },
];

export function HoldingPods({ of }: { of: ClusterUsages }) {
  const rows = of.flatMap(({ cluster, usage: { pods = [] } }) => pods.map((pod) => ({ cluster, pod })));
  if (rows.length === 0) return null;
  return (
    <Panel title="Pods with GPUs">
      <Table
        name="pods"
        rows={rows}
        id={({ cluster, pod }) => `${cluster} ${pod.namespace} ${pod.name}`}
        text={({ cluster, pod }) => `${cluster} ${pod.namespace} ${pod.name} ${pod.machine}`}
        columns={podColumns}
      />
    </Panel>
  );
}

export function OwnJobs({ cluster, access }: { cluster: ClusterUse; access: SshAccess }) {
  const { orgID, seesClusters } = useWho();
  const { cluster_id: id, organization_id: organizationId } = cluster;
  const usage = useQuery({
    ...readUsage(id, organizationId),
    enabled: seesClusters && organizationId === orgID,
  });
  if (usage.isPending) return null;
  const alias = `${aliasOf(cluster)}-job`;
  return (
    <Loaded of={usage}>
      {({ jobs = [] }) =>
        jobs
          .filter(({ mine }) => mine)
          .map((job) => (
            <section key={job.id} aria-label={`Job ${job.id}`}>
              <h4>
                Job {job.id}: <Text of={job.name} />
              </h4>
              <p className="soft">
                On {job.machines.join(', ')} with {count(job.gpus, 'GPU')}
                {job.ends_at !== undefined && (
                  <>
                    , ends <Age at={job.ends_at} />
                  </>
                )}
                .
              </p>
              <CopyLine text={sshLine(cluster, access, `+${job.id}`)} label={`log in to job ${job.id}`} />
              <p className="soft small">
                With the file that <code>andromeda ssh-config --write</code> makes:{' '}
                <a href={`vscode://vscode-remote/ssh-remote+${alias}/`}>VS Code in your newest job</a>, and{' '}
                <code>ssh -L 8888:localhost:8888 {alias}</code> for Jupyter.
              </p>
            </section>
          ))
      }
    </Loaded>
  );
}
