/** Plans member and key changes: makes them in a rolled-back transaction, and reports the effects on clusters, jobs, sessions. */
import type { AccessListUser } from '../../domain/access/manifest.ts';
import { plainKeyType } from '../../domain/access/ssh-key.ts';
import type { SshSession } from '../../domain/access/ssh-session.ts';
import { type Cluster, isInService, sidesOf } from '../../domain/clusters/cluster.ts';
import { DomainError, TooManyRequests } from '../../domain/error.ts';
import { memberRole } from '../../domain/kubernetes/bindings.ts';
import { foldEmail } from '../../domain/people/person.ts';
import { present } from '../../domain/present.ts';
import type { DirectLogins } from '../../domain/slurm/direct.ts';
import { restartPlan } from '../../domain/slurm/restart-plan.ts';
import { rolloutForPeople, type SlurmRollout } from '../../domain/slurm/settings.ts';
import { createRateLimiter } from '../../lib/limits.ts';
import { findWantedUser, listWantedUsers } from '../../store/access/access-list-users.ts';
import { findDirectLogins } from '../../store/access/direct-logins.ts';
import { listGivenNumbers } from '../../store/access/numbers.ts';
import { listAllClusters, listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import { inPart, type Reader, type Tx, tryOut } from '../../store/engine/index.ts';
import { findAccessRequest } from '../../store/organizations/access-requests.ts';
import { findMember, findMembership, listMembershipsOf } from '../../store/organizations/memberships.ts';
import { findPerson, findPersonByEmail, updateLifecycle } from '../../store/people/people.ts';
import { createSshKey, revokeSshKey } from '../../store/people/ssh-keys.ts';
import { approving } from './access-requests.ts';
import { settingPermissions } from './member-permissions.ts';
import { adding, removing, settingRole } from './memberships.ts';
import type { BusinessReply, BusinessRequest, CommandBody, Operation } from './operation.ts';

type Request = BusinessRequest<'planMemberChanges'>;
type Change = Request['body']['changes'][number];
type Plan = BusinessReply<'planMemberChanges'>;
type Planned = Plan['changes'][number];
type OnCluster = Plan['clusters'][number];

interface Reach {
  username: string;
  listed: AccessListUser | undefined;
  kubernetes: 'edit' | 'cluster-admin' | null;
}

interface PlannedPerson {
  userId: string;
  before: Reach | undefined;
  after: Reach | undefined;
}

/** A plan is rolled back, but blocks other writes while it runs. Filling in a form causes a few a minute. */
const plans = createRateLimiter({ burst: 20, everyMs: 500 });

export const planMemberChanges: Operation<'planMemberChanges'> = async ({ store, gateway }, request) => {
  const { orgID: organizationId } = request.path;
  takePlan(request.caller.userId);
  const sessions = await gateway.sessions();
  return tryOut(store, async (opened) => {
    const tx = { ...opened, now: request.now };
    const people = new Map<string, PlannedPerson>();
    const changes: Planned[] = [];
    for (const change of request.body.changes) {
      const known = await targetOf(tx.db, organizationId, change);
      // A person without an account had no access before.
      const before = known === undefined ? undefined : await reachOf(tx, organizationId, known);
      const earlier = known === undefined ? undefined : people.get(known);
      const target = { known, wasMember: (earlier ? earlier.before : before) !== undefined };
      const { planned, userId } = await planOne(tx, request, change, target);
      changes.push(planned);
      if (userId !== undefined && !people.has(userId))
        people.set(userId, { userId, before, after: undefined });
    }
    for (const person of people.values()) person.after = await reachOf(tx, organizationId, person.userId);
    const clusters = await effectsIn(tx.db, organizationId, [...people.values()], sessions);
    return { changes, clusters };
  });
};

/** Lists the caller's own jobs and sessions, and counts those of others: members must not see who else has some. */
export const planSshKeyChange: Operation<'planSshKeyChange'> = async ({ store, gateway }, request) => {
  const { userId } = request.caller;
  const { revoke: keyId } = request.query;
  takePlan(userId);
  const sessions = await gateway.sessions();
  const key = { type: plainKeyType, material: '', fingerprint: '' } as const;
  return tryOut(store, async (opened) => {
    const tx = { ...opened, now: request.now };
    const { email = '' } = (await findPerson(tx.db, userId)) ?? {};
    const { outcome, clusters } = await planOfPerson(tx, { userId, sessions }, () =>
      keyId === undefined
        ? createSshKey(tx, { userId, key, commandId: '' })
        : revokeSshKey(tx, { userId, keyId }),
    );
    const change = keyId === undefined ? 'register_key' : 'revoke_key';
    return {
      changes: [{ change, email, user_id: userId, ...outcome }],
      clusters: clusters.map((one) => ownOf(one, userId)),
    };
  });
};

function ownOf(effect: OnCluster, userId: string): OnCluster {
  const { added, removed, ended_jobs: jobs, ended_sessions: sessions, other_jobs: more = 0 } = effect;
  const ownJobs = jobs.filter(({ user }) => [...added, ...removed].includes(user));
  const ownSessions = sessions.filter(({ user_id: theirs }) => theirs === userId);
  return {
    ...effect,
    ended_jobs: ownJobs,
    ended_sessions: ownSessions,
    ...present({
      other_jobs: more + jobs.length - ownJobs.length || undefined,
      other_sessions: sessions.length - ownSessions.length || undefined,
    }),
  };
}

/** The effects of a change of one person in all of their organizations, and the refusal if it cannot be made. */
export async function planOfPerson(
  tx: Tx,
  { userId, sessions }: { userId: string; sessions: readonly SshSession[] },
  change: () => Promise<unknown>,
): Promise<{ outcome: Pick<Planned, 'result' | 'code' | 'message'>; clusters: OnCluster[] }> {
  const reaches = new Map<string, Reach | undefined>();
  for (const { organizationId } of await listMembershipsOf(tx.db, userId))
    reaches.set(organizationId, await reachOf(tx, organizationId, userId));
  try {
    await inPart(tx, change);
  } catch (error) {
    return { outcome: refusalOf(error), clusters: [] };
  }
  const clusters: OnCluster[] = [];
  for (const [organizationId, before] of reaches) {
    const person = { userId, before, after: await reachOf(tx, organizationId, userId) };
    clusters.push(...(await effectsIn(tx.db, organizationId, [person], sessions)));
  }
  return { outcome: { result: 'planned' }, clusters };
}

function refusalOf(error: unknown) {
  if (!(error instanceof DomainError)) throw error;
  const { code, message } = error;
  return { result: 'refused', code, message } as const;
}

/** Counts a plan. Throws `too_many_requests` above the rate limit. */
export function takePlan(userId: string): void {
  const waitMs = plans.take(userId);
  if (waitMs > 0) throw new TooManyRequests('Too many plans at once. Try again in a second.', waitMs);
}

async function effectsIn(
  db: Reader,
  organizationId: string,
  people: readonly PlannedPerson[],
  sessions: readonly SshSession[],
): Promise<OnCluster[]> {
  const clusters = (await listOrganizationClusters(db, organizationId)).filter(isInService);
  const effects: OnCluster[] = [];
  for (const cluster of clusters) effects.push(await effectOn(db, cluster, people, sessions));
  return effects.filter(isSomething);
}

async function targetOf(db: Reader, organizationId: string, change: Change): Promise<string | undefined> {
  if (change.change === 'add') return (await findPersonByEmail(db, change.email))?.id;
  if (change.change !== 'approve') {
    const { user_id: userId } = change;
    return userId;
  }
  const { request_id: requestId } = change;
  const asked = await findAccessRequest(db, requestId);
  return asked?.organizationId === organizationId ? asked.userId : undefined;
}

/**
 * Makes one change of the person `known`, as its write would. Throws if the caller may not make it; returns the
 * refusal if it cannot be made. It does not reveal whether a non-member has an account, or a deactivated one: only
 * the audited write does.
 */
async function planOne(
  tx: Tx,
  request: Request,
  change: Change,
  { known, wasMember }: { known: string | undefined; wasMember: boolean },
): Promise<{ planned: Planned; userId: string | undefined }> {
  const command = commandOf(request, change);
  await command.authorize?.(tx, request.caller);
  const memberOf = (userId: string | undefined) =>
    userId === undefined ? undefined : findMember(tx.db, request.path.orgID, userId);
  const email = change.change === 'add' ? foldEmail(change.email) : (await memberOf(known))?.email;
  const about = {
    change: change.change,
    email: email ?? '',
    ...(known !== undefined && (wasMember || change.change !== 'add') && { user_id: known }),
  };
  try {
    const { about: late } = await inPart(tx, async () => {
      const isUnsaid = known !== undefined && !wasMember && change.change === 'add';
      if (isUnsaid) await updateLifecycle(tx, { userId: known, state: 'active' });
      return command.apply(tx, '');
    });
    const userId = known ?? late?.subjectUserId ?? undefined;
    const username = (await memberOf(userId))?.username.username;
    return { planned: { ...about, ...(username !== undefined && { username }), result: 'planned' }, userId };
  } catch (error) {
    return { planned: { ...about, ...refusalOf(error) }, userId: undefined };
  }
}

function commandOf({ caller, path: { orgID } }: Request, change: Change): CommandBody<unknown> {
  if (change.change === 'add') {
    const { change: _, ...body } = change;
    return adding({ caller, path: { orgID }, body });
  }
  if (change.change === 'approve') {
    const { change: _, request_id: requestID, ...body } = change;
    return approving({ caller, path: { orgID, requestID }, body }, '');
  }
  const { user_id: userID } = change;
  const path = { orgID, userID };
  if (change.change === 'role') return settingRole({ caller, path, body: { role: change.role } });
  if (change.change === 'permissions') {
    const { change: _, user_id: _user, ...body } = change;
    return settingPermissions({ caller, path, body });
  }
  return removing({ caller, path, body: undefined });
}

async function reachOf(tx: Tx, organizationId: string, userId: string): Promise<Reach | undefined> {
  const { db, now } = tx;
  const [member, held] = [
    await findMember(db, organizationId, userId),
    await findMembership(db, organizationId, userId, now),
  ];
  if (!member || !held) return undefined;
  return {
    username: member.username.username,
    listed: await findWantedUser(db, organizationId, userId, now),
    kubernetes: memberRole({ role: held.role, permissions: [...held.permissions] }) ?? null,
  };
}

async function effectOn(
  db: Reader,
  cluster: Cluster,
  people: readonly PlannedPerson[],
  sessions: readonly SshSession[],
): Promise<OnCluster> {
  const onSlurm =
    cluster.scheduler === 'sunk' ? await effectOnSlurm(db, cluster, people, sessions) : undefined;
  return {
    cluster_id: cluster.id,
    cluster_name: cluster.name,
    added: [],
    removed: [],
    waiting_for_key: [],
    restarts: [],
    ended_jobs: [],
    ended_sessions: [],
    ...onSlurm,
    kubernetes: sidesOf(cluster).includes('kubernetes') ? people.flatMap(kubernetesChange) : [],
  };
}

async function effectOnSlurm(
  db: Reader,
  { id, name, driver, organizationId }: Cluster,
  people: readonly PlannedPerson[],
  sessions: readonly SshSession[],
) {
  const given = driver.slurm?.adopt ? await listGivenNumbers(db, organizationId) : new Map<string, never>();
  const [had, has] = [accounts(people, 'before', given), accounts(people, 'after', given)];
  const cluster: SlurmCluster = { id, name, rollout: rolloutForPeople(driver.slurm), accounts: has };
  const restart = await restartOf(db, cluster, had, cluster);
  const newcomers = people.flatMap(({ before, after }) => (before || !after ? [] : after.username));
  const onceKeyed = newcomers.filter((username) => restart.added.includes(username));
  const waited = new Set(had.map(({ username }) => username));
  const ended = sessions.filter(
    ({ clusterId, username }) =>
      clusterId === id && (restart.removed.includes(username) || restart.restarts.includes('login')),
  );
  return {
    ...restart,
    ...(onceKeyed.length > 0 && { once_keyed: onceKeyed }),
    waiting_for_key: has
      .filter(({ username, loginState }) => loginState === 'waiting_for_key' && !waited.has(username))
      .map(({ username }) => username),
    ended_sessions: ended.map(({ userId, username, openedAt }) => ({
      user_id: userId,
      username,
      opened_at: openedAt,
    })),
  };
}

/** A new member counts as having a key (`once_keyed`): only adding them, which is audited, reveals whether they do. */
function accounts(people: readonly PlannedPerson[], when: 'before' | 'after', given: Given): LoginAccount[] {
  return people.flatMap((person) => {
    const listed = person[when]?.listed;
    const loginState = person.before ? listed?.desiredLoginState : 'ready';
    const isAdopted = given.has(person.userId) && { isAdopted: true as const };
    return listed && loginState ? [{ username: listed.username, loginState, ...isAdopted }] : [];
  });
}

function kubernetesChange({ before, after }: PlannedPerson): OnCluster['kubernetes'] {
  const [had, has] = [before?.kubernetes ?? null, after?.kubernetes ?? null];
  if (had === has) return [];
  return [{ username: after?.username ?? before?.username ?? '', before: had, after: has }];
}

function isSomething(effect: OnCluster): boolean {
  const { added, removed, waiting_for_key, ended_jobs, ended_sessions, kubernetes } = effect;
  return [added, removed, waiting_for_key, ended_jobs, ended_sessions, kubernetes].some(
    (list) => list.length > 0,
  );
}

interface LoginAccount {
  username: string;
  loginState: 'ready' | 'waiting_for_key';
  isAdopted?: true;
}

type Given = Pick<Awaited<ReturnType<typeof listGivenNumbers>>, 'has'>;

interface SlurmCluster {
  id: string;
  name: string;
  rollout: SlurmRollout;
  accounts: LoginAccount[];
  direct?: DirectLogins | undefined;
}

/**
 * The restarts and ended jobs of a cluster whose accounts change from `had` to those of `stays`; a cluster that
 * leaves service (`stays` undefined) loses its accounts and all of its jobs. With the `live` rollout, only the jobs
 * of removed people end.
 */
async function restartOf(
  db: Reader,
  { id, name, rollout }: SlurmCluster,
  had: readonly LoginAccount[],
  stays: SlurmCluster | undefined,
) {
  const plan = restartPlan(had, stays?.accounts ?? []);
  const isLive = (stays?.rollout ?? rollout) === 'live';
  const ends = !stays || plan.restarts.includes('compute');
  const report = ends ? (await findObservation(db, id, 'slurm'))?.report : undefined;
  const isAll = !stays || !isLive;
  const jobs = (report?.runningJobs ?? []).filter(({ user }) => isAll || plan.removed.includes(user));
  return {
    cluster_id: id,
    cluster_name: name,
    added: plan.added,
    removed: plan.removed,
    ...(isLive ? { rollout: 'live' as const } : {}),
    restarts: stays && !isLive ? [...plan.restarts] : [],
    ended_jobs: jobs.map(({ id, user, name, machines }) => ({ id, user, name, machines: [...machines] })),
    ...present({ other_jobs: (isAll && report?.moreJobs?.running) || undefined }),
    ...(report && !report.runningJobs && { unknown_jobs: true as const }),
    ...present({ direct: stays?.direct }),
  };
}

type Restart = Awaited<ReturnType<typeof restartOf>>;

export async function listSlurmAccounts({ db, now }: Tx): Promise<SlurmCluster[]> {
  const lists = new Map<string, { users: AccessListUser[]; given: Given }>();
  const clusters: SlurmCluster[] = [];
  for (const { id, name, state, scheduler, driver, organizationId } of await listAllClusters(db)) {
    if (scheduler !== 'sunk' || !isInService({ state })) continue;
    const { users, given } = lists.get(organizationId) ?? {
      users: await listWantedUsers(db, organizationId, now),
      given: await listGivenNumbers(db, organizationId),
    };
    lists.set(organizationId, { users, given });
    const accounts = users.map(({ userId, username, desiredLoginState: loginState }): LoginAccount => {
      const isAdopted = driver.slurm?.adopt && given.has(userId);
      return { username, loginState, ...(isAdopted && { isAdopted }) };
    });
    const direct = await findDirectLogins(db, { id, organizationId, driver }, users, now);
    clusters.push({ id, name, rollout: rolloutForPeople(driver.slurm), accounts, direct });
  }
  return clusters;
}

/** The restarts and ended jobs that the changes since `before` cause; `before` is an earlier result of `listSlurmAccounts`. */
export async function listRestarts(tx: Tx, before: readonly SlurmCluster[]): Promise<Restart[]> {
  const after = await listSlurmAccounts(tx);
  const known = new Set(before.map(({ id }) => id));
  const restarts: Restart[] = [];
  for (const cluster of [...before, ...after.filter(({ id }) => !known.has(id))]) {
    const stays = after.find(({ id }) => id === cluster.id);
    const had = known.has(cluster.id) ? cluster.accounts : [];
    const restart = await restartOf(tx.db, cluster, had, stays);
    const { added, removed, ended_jobs: jobs } = restart;
    if (added.length + removed.length + jobs.length > 0) restarts.push(restart);
  }
  return restarts;
}
