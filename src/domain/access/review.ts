/** Access reviews: the sorted list of everyone with access in an organization, its CSV table, and periodic reviews of members' access. */
import { csv } from '../text.ts';
import type { Grant } from './grant.ts';
import { dayMs } from './lapse.ts';
import {
  type GrantedPermission,
  type PermissionKey,
  permissionCatalog,
  permissionLabels,
  type Role,
  wayTo,
} from './permission.ts';
import { opensText, type WayIn, wayText } from './ways-in.ts';

/** A person in the review; facts that are unknown, or hidden from the reader, are absent. */
export interface Reviewed {
  userId: string;
  name: string;
  email: string;
  isMember: boolean;
  role?: Role;
  username?: string;
  memberSince?: string;
  signedInAt?: string;
  loggedInAt?: string;
  /** Until when owners can keep the permissions that the last review gave an end. */
  keepBy?: string;
  permissions?: readonly string[];
  /** The end of each permission that has one. */
  ends?: Readonly<Record<string, string>>;
  /** The grant that ends first comes first. */
  grants?: readonly Grant[];
  ways?: readonly WayIn[];
  account?: 'ready' | 'waiting_for_key' | 'none';
}

export type ReviewSort =
  | PermissionKey
  | 'name'
  | 'email'
  | 'username'
  | 'role'
  | 'member_since'
  | 'last_sign_in'
  | 'grants'
  | 'ends'
  | 'account'
  | 'opens'
  | 'ways';

type NamedGrant = Pick<Grant, 'clusterName' | 'scope'> & { relation: string };

export function grantText({ clusterName, scope, relation }: NamedGrant): string {
  const where = scope === null ? clusterName : `${clusterName}/${scope}`;
  return `${where}: ${relation.replace('kubernetes.', '')}`;
}

export function filterReview(people: readonly Reviewed[], text: string): Reviewed[] {
  const wanted = text.trim().toLowerCase();
  return people.filter((one) => wanted === '' || textOf(one).toLowerCase().includes(wanted));
}

function textOf({
  name,
  email,
  username,
  role,
  permissions = [],
  grants = [],
  ways = [],
  account,
}: Reviewed) {
  const held = permissions.map((key) => `${key} ${permissionLabels[key as PermissionKey] ?? ''}`);
  const said = ways.map((way) => `${opensText[way.opens]} ${wayText(way)}`);
  return [name, email, username, role, account, ...held, ...grants.map(grantText), ...said].join('\n');
}

/** Sorts by a column, then by address; people without a value come last in either direction. */
export function sortReview(people: readonly Reviewed[], sort: ReviewSort, isDescending: boolean): Reviewed[] {
  const keyed = people.map((person) => ({ person, key: keyOf(person, sort) }));
  keyed.sort((one, other) => {
    if (one.key === '' || other.key === '') {
      if (one.key !== other.key) return one.key === '' ? 1 : -1;
    } else if (one.key !== other.key) return one.key < other.key === isDescending ? 1 : -1;
    return one.person.email < other.person.email ? -1 : 1;
  });
  return keyed.map(({ person }) => person);
}

const roles = { owner: '1', admin: '2', member: '3' } as const;
const order = { role: '1', granted: '2', included: '3' } as const;

/** The sort key; empty for a person without a value. */
function keyOf(person: Reviewed, sort: ReviewSort): string {
  switch (sort) {
    case 'name':
    case 'email':
    case 'username':
      return (person[sort] ?? '').toLowerCase();
    case 'role':
      return person.role === undefined ? '' : roles[person.role];
    case 'member_since':
      return person.memberSince ?? '';
    case 'last_sign_in':
      return person.signedInAt ?? '';
    case 'account':
      return person.account === 'none' ? '' : (person.account ?? '');
    case 'opens':
      return (person.ways ?? []).map(({ opens }) => opens).join('\n');
    case 'ways':
      return (person.ways ?? []).map(wayText).join('\n');
    case 'grants':
      return (person.grants ?? []).map(grantText).join('\n');
    case 'ends':
      return endsOf(person)[0] ?? '';
    default: {
      const way = wayTo(sort, person);
      return way === undefined ? '' : order[way];
    }
  }
}

/** The ends of the ways in to the selected cluster, else of all permissions and grants. */
function endsOf({ ends = {}, grants = [], ways }: Reviewed): string[] {
  if (ways) return ways.flatMap(({ until }) => until ?? []).sort();
  return [...Object.values(ends), ...grants.flatMap((grant) => grant.expiresAt ?? [])].sort();
}

export function reviewCsv(people: readonly Reviewed[], cluster: string | undefined): string {
  return csv(cluster === undefined ? linesOfAll(people) : linesOfCluster(people, cluster));
}

const facts = ['name', 'address', 'user name', 'role', 'member since', 'last sign-in'];

function factsOf(one: Reviewed): string[] {
  const { name, email, username, role, memberSince = '', signedInAt = '' } = one;
  return [name, email, username ?? '', role ?? 'not a member', memberSince, signedInAt];
}

function linesOfAll(people: readonly Reviewed[]): string[][] {
  if (people.every(({ grants }) => grants === undefined)) return [facts, ...people.map(factsOf)];
  const keys = permissionCatalog.map(({ key }) => key);
  const body = people.map((one) => {
    const { ends = {}, grants = [] } = one;
    const until = [
      ...Object.entries(ends).map((end) => end.join(' ')),
      ...grants.map((grant) => `${grantText(grant)} ${grant.expiresAt ?? 'no end date'}`),
    ];
    const reached = keys.map((key) => wayTo(key, one) ?? '');
    return [...factsOf(one), ...reached, grants.map(grantText).join('; '), until.join('; ')];
  });
  return [[...facts, ...keys, 'grants', 'until'], ...body];
}

function linesOfCluster(people: readonly Reviewed[], cluster: string): string[][] {
  const head = ['cluster', ...facts, 'account', 'opens', 'by', 'way', 'since', 'until'];
  const body = people.flatMap((one) =>
    (one.ways ?? []).map((way) => {
      const { opens, by, since, until = '' } = way;
      return [cluster, ...factsOf(one), one.account ?? '', opens, by, wayText(way), since, until];
    }),
  );
  return [head, ...body];
}

/**
 * `reviewMonths` after the last manual change of a member's permissions, those without an end get one, `reviewMs` ahead.
 * Owners keep them as they change any other end. Roles are not reviewed: an organization could lose its last owner.
 */
export const reviewMs = 30 * dayMs;
export const monthMs = (365.25 / 12) * dayMs;

/** Until when owners can keep what the last review gave an end; undefined if it gave none. `from` is `Membership.reviewFrom`. */
export function keepBy(from: string, held: readonly GrantedPermission[]): string | undefined {
  return held.some(({ expiresAt }) => expiresAt === from) ? from : undefined;
}
