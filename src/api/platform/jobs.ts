/** Who runs what on a Slurm cluster, as far as the caller may see it. */
import type { RunningJob } from '../../domain/access/manifest.ts';
import type { KeptSlurmReport } from '../../domain/clusters/observation.ts';
import { holdsStaffKey } from '../../domain/people/staff.ts';
import { present } from '../../domain/present.ts';
import type { Reader } from '../../store/engine/index.ts';
import { findMember, listNamesOfMembers } from '../../store/organizations/memberships.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import type { Asked } from './access.ts';
import type { PlatformReply } from './operation.ts';

type Jobs = Pick<PlatformReply<'getClusterUsage'>, 'jobs' | 'other_jobs'>;

/** The caller, as far as it matters whose jobs they see in an organization. */
export interface JobViewer {
  /** Undefined for who is no member. */
  username: string | undefined;
  /** Owners, admins and staff see all jobs. */
  seesAll: boolean;
}

export async function jobViewerIn(
  db: Reader,
  organizationId: string,
  { caller: { userId } }: Pick<Asked, 'caller'>,
): Promise<JobViewer> {
  const [membership, staffKeys] = await Promise.all([
    findMember(db, organizationId, userId),
    listStaffKeys(db, userId),
  ]);
  const isManager = membership !== undefined && membership.role !== 'member';
  return {
    username: membership?.username.username,
    seesAll: isManager || holdsStaffKey(staffKeys, 'staff.read'),
  };
}

/**
 * The jobs of a report, the caller's own first, then those that hold the most. Those of others are for every member where Slurm
 * shows them to everyone (slurm.conf, PrivateData), else for owners, admins and staff, and a count for the rest.
 */
export async function jobsIn(
  db: Reader,
  organizationId: string,
  { runningJobs, jobsArePrivate, jobsAreUnknown }: KeptSlurmReport,
  { username, seesAll: isPrivileged }: JobViewer,
): Promise<Jobs> {
  if (jobsAreUnknown) return {};
  const seesAll = isPrivileged || (username !== undefined && jobsArePrivate === false);
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
