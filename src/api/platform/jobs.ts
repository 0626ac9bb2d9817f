/** Who runs what on a Slurm cluster, as far as the caller may see it. */
import { isRecent } from '../../domain/access/list.ts';
import type { RunningJob } from '../../domain/access/manifest.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { holdsStaffKey } from '../../domain/people/staff.ts';
import { present } from '../../domain/present.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import type { Reader } from '../../store/engine/index.ts';
import { findMember, listNamesOfMembers } from '../../store/organizations/memberships.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import type { Asked } from './access.ts';
import type { PlatformReply } from './operation.ts';

type Jobs = Pick<PlatformReply<'getClusterUsage'>, 'jobs' | 'other_jobs'>;

/**
 * The jobs of the last report, the caller's own first, then those that hold the most. Those of others are for everyone where Slurm
 * shows them to everyone (slurm.conf, PrivateData), else for owners, admins and staff, and a count for the rest.
 */
export async function jobsOn(db: Reader, cluster: Cluster, { caller, now }: Asked): Promise<Jobs> {
  if (cluster.scheduler !== 'sunk') return {};
  const { id, organizationId } = cluster;
  const [observation, membership, staffKeys] = await Promise.all([
    findObservation(db, id, 'slurm'),
    findMember(db, organizationId, caller.userId),
    listStaffKeys(db, caller.userId),
  ]);
  // What ran before says nothing of now.
  if (!observation || !isRecent(observation.observedAt, now)) return {};
  const { runningJobs, jobsArePrivate, jobsAreUnknown } = observation.report;
  if (jobsAreUnknown) return {};
  const username = membership?.username.username;
  const seesAll =
    jobsArePrivate === false ||
    (membership !== undefined && membership.role !== 'member') ||
    holdsStaffKey(staffKeys, 'staff.read');
  const shown = runningJobs.filter(({ user }) => seesAll || user === username);
  const hidden = runningJobs.filter((job) => !shown.includes(job));
  const names = await listNamesOfMembers(db, organizationId, [...new Set(shown.map(({ user }) => user))]);
  const gpusOf = ({ gpus = 0 }: RunningJob) => gpus;
  return {
    jobs: shown
      .map((job) => jobBody(job, job.user === username, names.get(job.user)))
      .sort((a, b) => Number(b.mine) - Number(a.mine) || b.gpus - a.gpus),
    ...(hidden.length > 0 && {
      other_jobs: { jobs: hidden.length, gpus: hidden.reduce((sum, job) => sum + gpusOf(job), 0) },
    }),
  };
}

function jobBody({ id, name, user, machines, gpus = 0, ...job }: RunningJob, mine: boolean, person?: string) {
  const { startedAt, endsAt } = job;
  const optional = present({ person, started_at: startedAt, ends_at: endsAt });
  return { id, name, user, ...optional, mine, machines: [...machines], gpus };
}
