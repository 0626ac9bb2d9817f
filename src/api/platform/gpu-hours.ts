/** GPU time of an organization's clusters, by person and by day. */
import type { RunningJob } from '../../domain/access/manifest.ts';
import type { Cluster, KeptSlurmReport } from '../../domain/clusters/cluster.ts';
import { lastDays } from '../../domain/clusters/gpu-hours.ts';
import { forbidden } from '../../domain/error.ts';
import { holdsStaffKey } from '../../domain/people/person.ts';
import { present } from '../../domain/present.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { listGpuDays } from '../../store/clusters/gpu-days.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import type { Reader } from '../../store/engine/index.ts';
import { findMember, findMembership, listNamesOfMembers } from '../../store/organizations/memberships.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import { canReadClusters, type Operation, type PlatformReply, type RequestContext } from './access.ts';

type ClusterHours = PlatformReply<'listGpuHours'>['items'][number];

/**
 * A member sees the same people as with Slurm's own `sacct`: everyone, unless `PrivateData` contains `usage` or is
 * unknown; then themselves and the sum of the others. Owners, admins and staff see everyone.
 */
export const listGpuHours: Operation<'listGpuHours'> = async ({ store: { read } }, request) => {
  const { businessOrgId: organizationId, days = 30 } = request.query;
  if (!(await canReadClusters(read, request, organizationId)))
    throw forbidden('This needs clusters.read in the organization.');
  const viewer = await jobViewerIn(read, organizationId, request);
  const asked = lastDays(request.now, days).reverse();
  const clusters = (await listOrganizationClusters(read, organizationId)).filter(
    ({ scheduler }) => scheduler === 'sunk',
  );
  const items: ClusterHours[] = [];
  for (const cluster of clusters) items.push(await hoursOf(read, cluster, { asked, viewer }));
  return { organization_id: organizationId, since: asked[0] ?? '', items };
};

async function hoursOf(
  db: Reader,
  { id, name, organizationId }: Cluster,
  { asked, viewer }: { asked: readonly string[]; viewer: JobViewer },
): Promise<ClusterHours> {
  const days = await listGpuDays(db, id, asked[0] ?? '');
  const first = days[0]?.day;
  const byDay = new Map(days.map(({ day, seconds }) => [day, sum(Object.values(seconds))]));
  const report = (await findObservation(db, id, 'slurm'))?.report;
  const seesAll = viewer.seesAll || report?.usageIsPrivate === false;
  const seconds = new Map<string, number>();
  for (const day of days)
    for (const [user, more] of Object.entries(day.seconds))
      seconds.set(user, (seconds.get(user) ?? 0) + more);
  const names = await listNamesOfMembers(db, organizationId, [...seconds.keys()]);
  const bySeconds = [...seconds].sort(([, a], [, b]) => b - a);
  const people = bySeconds.flatMap(([user, of]) => {
    const mine = user === viewer.username;
    if (!seesAll && !mine) return [];
    return { user, ...present({ person: names.get(user) }), mine, gpu_hours: hours(of) };
  });
  const total = sum(seconds.values());
  const members = sum([...seconds].filter(([user]) => names.has(user)).map(([, of]) => of));
  return {
    cluster_id: id,
    cluster_name: name,
    // `observed` if any day is: the total is no more reliable than its weakest day.
    ...present({
      first_day: first,
      source: (days.find((one) => one.source === 'observed') ?? days[0])?.source,
    }),
    gpu_hours: hours(total),
    members_gpu_hours: hours(members),
    people,
    limits: (report?.limits ?? [])
      .filter(({ user }) => user === undefined || seesAll || user === viewer.username)
      .map(({ wanted, ...limit }) => ({ ...limit, ...present({ lab_file: wanted }) })),
    days: asked
      .filter((day) => first !== undefined && day >= first)
      .map((day) => ({ day, gpu_hours: hours(byDay.get(day) ?? 0) })),
  };
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((all, one) => all + one, 0);
}

function hours(seconds: number): number {
  return Math.round(seconds / 36) / 100;
}

export interface JobViewer {
  /** Undefined for a non-member. */
  username: string | undefined;
  seesAll: boolean;
  /** Owners, admins, staff and members with Kubernetes access see all pods that hold GPUs. */
  seesPods: boolean;
}

export async function jobViewerIn(
  db: Reader,
  organizationId: string,
  { caller: { userId }, now }: Pick<RequestContext, 'caller' | 'now'>,
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
 * The running jobs of a report, the caller's own first, then the largest; and the waiting jobs, by priority. A member
 * sees other people's jobs if Slurm shows them to everyone (slurm.conf, PrivateData), else only their number; owners,
 * admins and staff see all.
 */
export async function jobsIn(
  db: Reader,
  organizationId: string,
  { runningJobs, pendingJobs = [], moreJobs, jobsArePrivate }: KeptSlurmReport,
  { username, seesAll: isPrivileged }: JobViewer,
): Promise<Pick<PlatformReply<'getClusterUsage'>, 'jobs' | 'pending_jobs' | 'other_jobs'>> {
  if (!runningJobs) return {};
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
