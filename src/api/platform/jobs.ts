/** Who runs what on a Slurm cluster, as far as the caller may see it. */
import type { RunningJob } from '../../domain/access/manifest.ts';
import type { KeptSlurmReport } from '../../domain/clusters/observation.ts';
import { holdsStaffKey } from '../../domain/people/staff.ts';
import { present } from '../../domain/present.ts';
import type { Reader } from '../../store/engine/index.ts';
import { findMember, findMembership, listNamesOfMembers } from '../../store/organizations/memberships.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import type { Asked } from './access.ts';
import type { PlatformReply } from './operation.ts';

type Jobs = Pick<PlatformReply<'getClusterUsage'>, 'jobs' | 'pending_jobs' | 'other_jobs'>;

/** The caller, as far as it matters whose jobs they see in an organization. */
export interface JobViewer {
  /** Undefined for who is no member. */
  username: string | undefined;
  /** Owners, admins and staff see all jobs. */
  seesAll: boolean;
  /** They, and members who are let in to Kubernetes, see all pods that hold GPUs. */
  seesPods: boolean;
}

export async function jobViewerIn(
  db: Reader,
  organizationId: string,
  { caller: { userId }, now }: Pick<Asked, 'caller' | 'now'>,
): Promise<JobViewer> {
  const [member, membership, staffKeys] = await Promise.all([
    findMember(db, organizationId, userId),
    findMembership(db, organizationId, userId, now),
    listStaffKeys(db, userId),
  ]);
  const isManager = membership !== undefined && membership.role !== 'member';
  const seesAll = isManager || holdsStaffKey(staffKeys, 'staff.read');
  return {
    username: member?.username.username,
    seesAll,
    seesPods: seesAll || membership?.permissions.has('clusters.kubernetes') === true,
  };
}

/**
 * The jobs of a report, the caller's own first, then those that hold the most; and those that wait, by priority. Those of others
 * are for every member where Slurm shows them to everyone (slurm.conf, PrivateData), else for owners, admins and staff, and a
 * count for the rest.
 */
export async function jobsIn(
  db: Reader,
  organizationId: string,
  { runningJobs, pendingJobs = [], moreJobs, jobsArePrivate, jobsAreUnknown }: KeptSlurmReport,
  { username, seesAll: isPrivileged }: JobViewer,
): Promise<Jobs> {
  if (jobsAreUnknown) return {};
  const seesAll = isPrivileged || (username !== undefined && jobsArePrivate === false);
  const isShown = ({ user }: { user: string }) => seesAll || user === username;
  const users = [...runningJobs, ...pendingJobs].filter(isShown).map(({ user }) => user);
  const names = await listNamesOfMembers(db, organizationId, [...new Set(users)]);
  const whose = ({ id, name, user, gpus = 0 }: Pick<RunningJob, 'id' | 'name' | 'user' | 'gpus'>) => {
    return { id, name, user, ...present({ person: names.get(user) }), mine: user === username, gpus };
  };
  const hidden = runningJobs.filter((job) => !isShown(job));
  const others = {
    jobs: hidden.length + (moreJobs?.running ?? 0),
    gpus: hidden.reduce((sum, { gpus = 0 }) => sum + gpus, 0),
    pending: pendingJobs.filter((job) => !isShown(job)).length + (moreJobs?.pending ?? 0),
  };
  return {
    jobs: runningJobs
      .filter(isShown)
      .map((job) => {
        const times = present({ started_at: job.startedAt, ends_at: job.endsAt });
        return { ...whose(job), ...times, machines: [...job.machines] };
      })
      .sort((a, b) => Number(b.mine) - Number(a.mine) || b.gpus - a.gpus),
    pending_jobs: pendingJobs.flatMap((job, ahead) => {
      if (!isShown(job)) return [];
      return { ...whose(job), reason: job.reason, ahead, ...present({ expected_at: job.startsAt }) };
    }),
    ...((others.jobs > 0 || others.pending > 0) && { other_jobs: others }),
  };
}
