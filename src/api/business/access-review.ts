/** The access review: members, and people who only hold a grant. All of it is read in one snapshot. */
import type { Grant } from '../../domain/access/grant.ts';
import { endsOf, requireHeld, wayTo } from '../../domain/access/permission.ts';
import { filterReview, keepBy, type Reviewed, reviewCsv, sortReview } from '../../domain/access/review.ts';
import { waysIn } from '../../domain/access/ways-in.ts';
import { type Cluster, isInService } from '../../domain/clusters/cluster.ts';
import { invalidRequest, notFound } from '../../domain/error.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { listAccessListUsers } from '../../store/access/access-lists.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import { listAllGrantsAt, listAllLiveGrants } from '../../store/organizations/grants.ts';
import { findHistoryStart, listMembersAt } from '../../store/organizations/holdings.ts';
import { listAllGrantedPermissions, listMembers } from '../../store/organizations/memberships.ts';
import { listNames } from '../../store/people/people.ts';
import { listLastLogins } from '../../store/people/ssh-keys.ts';
import { sidesWithWays, wayBody } from './member-access.ts';
import type { BusinessReply, BusinessRequest, Operation } from './operation.ts';
import { standingIn } from './organizations.ts';

type ReviewRequest = Pick<BusinessRequest<'saveAccessReview'>, 'caller' | 'path' | 'query' | 'now'>;

interface Review {
  people: Reviewed[];
  all: Reviewed[];
  showsAccess: boolean;
  cluster: Cluster | undefined;
}

export const reviewAccess: Operation<'reviewAccess'> = async ({ store }, request) => {
  const { people, all, showsAccess, cluster } = await readReview(store, request);
  const { limit = 100, after = '0' } = request.query;
  const end = Number(after) + limit;
  return {
    people: people.slice(Number(after), end).map(personBody),
    total: people.length,
    shows_access: showsAccess,
    counts: countsOf(all, showsAccess, cluster),
    read_at: request.query.at ?? toTime(request.now),
    ...(end < people.length && { next_page_token: String(end) }),
  };
};

export const saveAccessReview: Operation<'saveAccessReview'> = async ({ store }, request) => {
  const { people, cluster } = await readReview(store, request);
  return reviewCsv(people, cluster?.name);
};

async function readReview(store: Store, { caller, path, query, now }: ReviewRequest): Promise<Review> {
  const { orgID: organizationId } = path;
  const who = { organizationId, userId: caller.userId };
  return store.readSnapshot(async (db) => {
    const own = await standingIn({ db, now }, who, 'staff.read', (held) =>
      held.permissions.has('members.manage'),
    );
    const showsAccess = own.permissions.has('members.manage');
    if (query.cluster !== undefined || query.at !== undefined || query.due)
      requireHeld(own.permissions, 'members.manage');
    if (query.at !== undefined && (query.cluster !== undefined || query.due))
      throw invalidRequest('With at, give neither cluster nor due: ways in are known of the present only.');
    const clusters = await listOrganizationClusters(db, organizationId);
    const cluster = clusters.find((one) => one.id === query.cluster && isInService(one));
    if (query.cluster !== undefined && !cluster)
      throw notFound('The organization has no such cluster in service.');
    const all = !showsAccess
      ? await onlyMembers(db, organizationId)
      : query.at === undefined
        ? await everyone(db, organizationId, { clusters, cluster }, now)
        : await everyoneAt(db, organizationId, clusters, await knownTime(db, query.at, now));
    const asked = query.due ? all.filter((one) => one.keepBy !== undefined) : all;
    const found = filterReview(asked, query.filter ?? '');
    const { sort = 'name', order } = query;
    return { people: sortReview(found, sort, order === 'descending'), all, showsAccess, cluster };
  });
}

/** Throws `invalid_request` for a future time, or one before the recorded history begins. */
async function knownTime(db: Reader, given: string, now: number): Promise<string> {
  const at = toTime(fromTime(given));
  const start = await findHistoryStart(db);
  if (at < start) throw invalidRequest(`Who had access is known from ${start} on, not before.`);
  if (at > toTime(now)) throw invalidRequest('at is to come.');
  return at;
}

async function everyoneAt(
  db: Reader,
  organizationId: string,
  clusters: readonly Cluster[],
  at: string,
): Promise<Reviewed[]> {
  const members = new Map((await listMembersAt(db, organizationId, at)).map((one) => [one.userId, one]));
  const ids = new Set(clusters.map(({ id }) => id));
  const live = (await listAllGrantsAt(db, at)).filter((one) => ids.has(one.clusterId));
  const grantsOf = Map.groupBy(live, ({ userId }) => userId);
  const userIds = [...new Set([...members.keys(), ...grantsOf.keys()])];
  const names = await listNames(db, userIds);
  return userIds.map((userId): Reviewed => {
    const member = members.get(userId);
    const grants = (grantsOf.get(userId) ?? []).toSorted(byEnd);
    const own = member?.role === 'member' ? member.granted : [];
    return {
      ...{ userId, name: names.get(userId)?.displayName ?? '', isMember: member !== undefined, grants },
      email: member?.email ?? grants[0]?.email ?? '',
      ...present({ role: member?.role, username: member?.username, memberSince: member?.memberSince }),
      ...present({ ends: endsOf([...own]) }),
      permissions: own.map(({ key }) => key),
    };
  });
}

async function onlyMembers(db: Reader, organizationId: string): Promise<Reviewed[]> {
  const members = await listMembers(db, organizationId);
  const names = await listNames(
    db,
    members.map(({ userId }) => userId),
  );
  return members.map(({ userId, email, role, username, createdAt }) => ({
    ...{ userId, email, role, isMember: true, memberSince: createdAt, username: username.username },
    name: names.get(userId)?.displayName ?? '',
  }));
}

async function everyone(
  db: Reader,
  organizationId: string,
  { clusters, cluster }: { clusters: readonly Cluster[]; cluster: Cluster | undefined },
  now: number,
): Promise<Reviewed[]> {
  const members = new Map((await listMembers(db, organizationId)).map((one) => [one.userId, one]));
  const granted = await listAllGrantedPermissions(db, organizationId, now);
  const ids = new Set((cluster ? [cluster] : clusters).map(({ id }) => id));
  const live = (await listAllLiveGrants(db, now)).filter((one) => ids.has(one.clusterId));
  const grantsOf = Map.groupBy(live, ({ userId }) => userId);
  const userIds = [...new Set([...members.keys(), ...grantsOf.keys()])];
  const names = await listNames(db, userIds);
  const logins = await listLastLogins(db, organizationId);
  const sides = cluster && sidesWithWays(cluster);
  const listed = cluster?.scheduler === 'sunk' ? await listAccessListUsers(db, cluster.id) : undefined;
  const accounts = new Map(listed?.map((one) => [one.userId, one.desiredLoginState]));
  const people = userIds.map((userId): Reviewed => {
    const member = members.get(userId);
    const grants = (grantsOf.get(userId) ?? []).toSorted(byEnd);
    const held = granted.get(userId) ?? [];
    const own = member?.role === 'member' ? held : [];
    return {
      userId,
      name: names.get(userId)?.displayName ?? '',
      email: member?.email ?? grants[0]?.email ?? '',
      isMember: member !== undefined,
      ...present({ role: member?.role, username: member?.username.username }),
      ...present({ memberSince: member?.createdAt, signedInAt: names.get(userId)?.signedInAt }),
      ...present({ loggedInAt: logins.get(userId), keepBy: member && keepBy(member.reviewFrom, own) }),
      ...present({ ends: endsOf(own) }),
      permissions: own.map(({ key }) => key),
      grants,
      ...(sides && { ways: waysIn(sides, member && { ...member, granted: own }, grants) }),
      ...(listed && { account: accounts.get(userId) ?? 'none' }),
    };
  });
  return cluster ? people.filter(({ ways }) => ways && ways.length > 0) : people;
}

function personBody(person: Reviewed): BusinessReply<'reviewAccess'>['people'][number] {
  const { userId, name, email, isMember, memberSince, signedInAt, ends, grants, ways } = person;
  const { role, username, permissions, account, loggedInAt, keepBy: by } = person;
  return {
    ...{ user_id: userId, name, email, is_member: isMember },
    ...present({ role, username, account, permissions: permissions && [...permissions] }),
    ...present({ member_since: memberSince, last_sign_in_at: signedInAt, expires_at: ends && { ...ends } }),
    ...present({ last_ssh_login_at: loggedInAt, keep_by: by }),
    ...present({ grants: grants?.map(grantBody), ways: ways?.map(wayBody) }),
  };
}

function grantBody(grant: Grant) {
  return {
    ...snakeCased(grant, ['id', 'clusterId', 'clusterName', 'relation', 'grantedAt']),
    ...present(snakeCased(grant, ['scope', 'expiresAt'])),
  };
}

function byEnd({ expiresAt: one }: { expiresAt: string | null }, other: { expiresAt: string | null }) {
  return (one ?? '~') < (other.expiresAt ?? '~') ? -1 : 1;
}

function countsOf(people: readonly Reviewed[], showsAccess: boolean, cluster: Cluster | undefined) {
  const members = people.filter(({ isMember }) => isMember);
  const managers = members.filter(({ role }) => role !== 'member');
  const counts = { people: people.length, members: members.length, managers: managers.length };
  return showsAccess ? { ...counts, ssh: people.filter((one) => mayLogIn(one, cluster)).length } : counts;
}

function mayLogIn({ role, permissions = [], ways }: Reviewed, cluster: Cluster | undefined): boolean {
  if (cluster) return ways?.some(({ opens }) => opens === 'ssh' || opens === 'ssh.admin') ?? false;
  return wayTo('clusters.ssh', { ...(role && { role }), permissions }) !== undefined;
}
