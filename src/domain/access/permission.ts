/** Roles, permission keys and their inclusions (contract, "Roles and permissions"), and the ends of permissions. */
import { forbidden, invalidState } from '../error.ts';
import { warningMs } from './lapse.ts';

export type Role = 'owner' | 'admin' | 'member';

interface Permission {
  key: string;
  description: string;
  implies: readonly string[];
}

/** Every permission key that can be granted to a member, with the keys that it includes directly. */
export const permissionCatalog = [
  { key: 'clusters.read', description: 'See clusters, their machines and storage', implies: [] },
  { key: 'clusters.ssh', description: 'Log in to Slurm clusters over SSH', implies: [] },
  {
    key: 'clusters.ssh.admin',
    description: 'Log in to Slurm clusters as a cluster administrator',
    implies: ['clusters.ssh'],
  },
  { key: 'clusters.kubernetes', description: 'Use Kubernetes with the edit role', implies: [] },
  {
    key: 'clusters.kubernetes.admin',
    description: 'Use Kubernetes as cluster-admin',
    implies: ['clusters.kubernetes'],
  },
  {
    key: 'clusters.configure',
    description: 'Change the Slurm configuration of clusters',
    implies: ['clusters.ssh.admin'],
  },
  { key: 'members.manage', description: 'Grant and remove the permissions of other members', implies: [] },
  { key: 'reservations.read', description: 'See reservations', implies: [] },
] as const satisfies readonly Permission[];

export type PermissionKey = (typeof permissionCatalog)[number]['key'];

export const permissionLabels = {
  'clusters.read': 'View clusters',
  'clusters.ssh': 'SSH',
  'clusters.ssh.admin': 'SSH admin',
  'clusters.kubernetes': 'Kubernetes',
  'clusters.kubernetes.admin': 'Kubernetes admin',
  'clusters.configure': 'Configure',
  'members.manage': 'Manage members',
  'reservations.read': 'Reservations',
} as const satisfies Record<PermissionKey, string>;

const byKey = new Map<string, Permission>(
  permissionCatalog.map((permission) => [permission.key, permission]),
);
const everyKey: ReadonlySet<string> = new Set(byKey.keys());

/** Checks that `key` can be granted to a member. */
export function isPermissionKey(key: string): key is PermissionKey {
  return byKey.has(key);
}

/** The keys that include `key`, itself among them: each of them is enough to hold `key`. */
export function keysIncluding(key: PermissionKey): PermissionKey[] {
  return permissionCatalog.map((permission) => permission.key).filter((held) => closureOf([held]).has(key));
}

/** How a person holds a permission: by role, by the key itself, or by a key that includes it. */
export function wayTo(
  key: PermissionKey,
  { role, permissions = [] }: { role?: Role; permissions?: readonly string[] },
): 'role' | 'granted' | 'included' | undefined {
  if (role !== undefined && role !== 'member') return 'role';
  if (permissions.includes(key)) return 'granted';
  return closureOf(permissions).has(key) ? 'included' : undefined;
}

/** Every key a member holds by role or grant, inclusions followed. Owners and admins hold all keys. */
export function effectivePermissions(role: Role, granted: readonly string[]): ReadonlySet<string> {
  return role === 'member' ? closureOf(granted) : everyKey;
}

/**
 * True for people who see all clusters of the organization: those who may list clusters, and those who manage members
 * and need to see the effects. Others see only the clusters that they have access to.
 */
export function seesClusters(held: ReadonlySet<string>): boolean {
  return held.has('clusters.read') || held.has('members.manage');
}

/** Replaces the text of a fault for people who do not see the cluster and cannot mend it. */
export const hiddenFault = 'Your administrator has been told.';

export function withoutFaultDetails<T extends { message?: string }>(state: T): T {
  return state.message === undefined ? state : { ...state, message: hiddenFault };
}

export function closureOf(keys: readonly string[]): Set<string> {
  const held = new Set<string>();
  const pending = [...keys];
  for (let key = pending.pop(); key !== undefined; key = pending.pop()) {
    if (held.has(key)) continue;
    held.add(key);
    pending.push(...(byKey.get(key)?.implies ?? []));
  }
  return held;
}

/** The keys that represent a role: reported for an owner or admin, and never granted. */
export const roleKeys = { owner: 'organization.owner', admin: 'organization.admin' } as const;

/** Every key as the API reports it: `implies` lists direct and indirect inclusions. */
export const fullCatalog: readonly Permission[] = [
  ...permissionCatalog.map((permission) => ({
    ...permission,
    implies: [...closureOf(permission.implies)].sort(),
  })),
  {
    key: roleKeys.admin,
    description: 'Every permission in the organization except ownership',
    implies: [...everyKey].sort(),
  },
  {
    key: roleKeys.owner,
    description: 'Every permission in the organization, and its owners',
    implies: [...everyKey, roleKeys.admin].sort(),
  },
];

/** Named presets of keys. Granting a preset grants its keys; the name is not stored. */
export const permissionProfiles = [
  {
    name: 'Engineer',
    description: 'Works on the clusters: sees them, logs in over SSH, uses Kubernetes',
    permissions: ['clusters.kubernetes', 'clusters.read', 'clusters.ssh', 'reservations.read'],
  },
] as const;

export interface GrantedPermission {
  key: string;
  /** RFC 3339 in UTC, the first moment at which it is no longer held; null: no end. */
  expiresAt: string | null;
}

/** The later of two ends; null, no end, is the latest. */
export function laterEnd(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return null;
  return one > other ? one : other;
}

/** Each key once, in order, with its latest end. */
export function withLatestEnds(granted: readonly GrantedPermission[]): GrantedPermission[] {
  const ends = new Map<string, string | null>();
  for (const { key, expiresAt } of granted) {
    const had = ends.get(key);
    ends.set(key, had === undefined ? expiresAt : laterEnd(had, expiresAt));
  }
  return [...ends]
    .map(([key, expiresAt]) => ({ key, expiresAt }))
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** Every key that is held, inclusions followed, with its end. */
export interface Holdings {
  has(key: string): boolean;
  endOf(key: string): string | null;
}

/** The permissions of owners and admins have no end. */
export function heldUntil(role: Role, granted: readonly GrantedPermission[]): Holdings {
  if (role !== 'member') return { has: () => true, endOf: () => null };
  const all = granted.flatMap(({ key, expiresAt }) =>
    [...closureOf([key])].map((held) => ({ key: held, expiresAt })),
  );
  const ends = new Map(withLatestEnds(all).map(({ key, expiresAt }) => [key, expiresAt]));
  return { has: (key) => ends.has(key), endOf: (key) => ends.get(key) ?? null };
}

/**
 * Throws `forbidden` if a granter who holds `held` may not change a member's permissions from `before` to `wanted`:
 * they must hold each added or extended permission themselves for at least as long.
 */
export function requireMayGrant(
  held: Holdings,
  before: readonly GrantedPermission[],
  wanted: readonly GrantedPermission[],
): void {
  const had = new Map(before.map(({ key, expiresAt }) => [key, expiresAt]));
  for (const { key, expiresAt } of wanted) {
    const earlier = had.get(key);
    if (earlier !== undefined && laterEnd(earlier, expiresAt) === earlier) continue;
    if (!held.has(key)) throw forbidden(`You cannot grant ${key}, which you do not hold.`);
    const end = held.endOf(key);
    if (laterEnd(end, expiresAt) !== end) {
      throw forbidden(
        `You hold ${key} until ${endText(end ?? '')} yourself, and cannot grant it for longer.`,
      );
    }
  }
}

/** For this long after its end, a set without ends cannot grant a key anew: the client may have read the set before the end. */
export const endStaysMs = 86_400_000;

/** Throws `invalid_state` if a set contains a key that `ended` recently, and gives no end for it. */
export function requireEndSaid(
  keys: readonly string[],
  ends: ReadonlyMap<string, string | null>,
  ended: readonly GrantedPermission[],
): void {
  for (const { key, expiresAt } of ended) {
    if (!keys.includes(key) || ends.has(key)) continue;
    throw invalidState(
      `${key} ended at ${endText(expiresAt ?? '')}. Say in expires_at until when it is given again, or null to give it for good.`,
    );
  }
}

/**
 * Notices to a member about permissions that end soon, one sentence per end time; none if another key keeps the
 * permission. They begin a week before the end, or in the second half of a term shorter than two weeks, counted from
 * `since`, the last change of the membership. The end that a review gave (`reviewed`) is announced at once.
 */
export function endNotices(
  {
    organization,
    since,
    granted,
    reviewed,
  }: {
    organization: string;
    since: string;
    granted: readonly GrantedPermission[];
    reviewed: string;
  },
  now: number,
): string[] {
  const held = heldUntil('member', granted);
  const ending = new Map<string, string[]>();
  for (const { key, expiresAt } of granted) {
    if (expiresAt === null || held.endOf(key) !== expiresAt) continue;
    const end = Date.parse(expiresAt);
    if (expiresAt !== reviewed && end - now > warningMs(end - Date.parse(since))) continue;
    ending.set(expiresAt, [...(ending.get(expiresAt) ?? []), key]);
  }
  return [...ending].sort().map(([end, keys]) => {
    const verb = keys.length === 1 ? 'ends' : 'end';
    const unless = end === reviewed ? `, unless an owner keeps ${keys.length === 1 ? 'it' : 'them'}` : '';
    return `Your ${keys.join(', ')} in ${organization} ${verb} at ${endText(end)}${unless}. Ask for more time before that: andromeda access request ${keys.join(' ')}`;
  });
}

export function endsOf(granted: readonly GrantedPermission[]): Record<string, string> | undefined {
  const ends = granted.flatMap(({ key, expiresAt }) =>
    expiresAt === null ? [] : [[key, expiresAt] as const],
  );
  return ends.length === 0 ? undefined : Object.fromEntries(ends);
}

/** `clusters.read, clusters.ssh until 2030-01-01 09:00 UTC`; `none`. */
export function grantedText(granted: readonly GrantedPermission[]): string {
  const texts = granted.map(({ key, expiresAt }) =>
    expiresAt === null ? key : `${key} until ${endText(expiresAt)}`,
  );
  return texts.join(', ') || 'none';
}

/** `2030-01-01 09:00 UTC` */
export function endText(at: string): string {
  return `${at.slice(0, 16).replace('T', ' ')} UTC`;
}

export function isSameSet(one: readonly GrantedPermission[], other: readonly GrantedPermission[]): boolean {
  const ends = new Map(other.map(({ key, expiresAt }) => [key, expiresAt]));
  return ends.size === one.length && one.every(({ key, expiresAt }) => ends.get(key) === expiresAt);
}

export function forGood(keys: readonly string[]): GrantedPermission[] {
  return [...new Set(keys)].sort().map((key) => ({ key, expiresAt: null }));
}

/** Throws `forbidden` unless the organization itself gave the caller the permission. */
export function requireHeld(held: ReadonlySet<string> | undefined, key: PermissionKey): void {
  if (!held?.has(key)) throw forbidden(`This needs the permission ${key} in the organization.`);
}
