/** Roles, permission keys and what they include (contract, "Roles and permissions"). */

export type Role = 'owner' | 'admin' | 'member';

interface Permission {
  key: string;
  description: string;
  implies: readonly string[];
}

/** Every key that can be granted to a member, with the keys it includes directly. */
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

/** Whether `key` is one that can be granted to a member. */
export function isPermissionKey(key: string): key is PermissionKey {
  return byKey.has(key);
}

/** The keys that include `key`, itself among them: holding any of them is holding it. */
export function keysIncluding(key: PermissionKey): PermissionKey[] {
  return permissionCatalog.map((permission) => permission.key).filter((held) => closureOf([held]).has(key));
}

/** By which way someone holds a permission: their role, itself, or one that includes it. */
export function wayTo(
  key: PermissionKey,
  { role, permissions = [] }: { role?: Role; permissions?: readonly string[] },
): 'role' | 'granted' | 'included' | undefined {
  if (role !== undefined && role !== 'member') return 'role';
  if (permissions.includes(key)) return 'granted';
  return closureOf(permissions).has(key) ? 'included' : undefined;
}

/** Every key a member holds, by role or by grant, inclusions followed. An owner and an admin hold all. */
export function effectivePermissions(role: Role, granted: readonly string[]): ReadonlySet<string> {
  return role === 'member' ? closureOf(granted) : everyKey;
}

/**
 * Whether a person sees all clusters of the organization: who may list them, and who manages members, to see what their
 * changes do. Others see only the clusters that they have access to.
 */
export function seesClusters(held: ReadonlySet<string>): boolean {
  return held.has('clusters.read') || held.has('members.manage');
}

/** What is said in place of a fault to those who do not see the cluster, and can do nothing about it. */
export const hiddenFault = 'Your administrator has been told.';

/** The same without what a fault says. */
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

/** The keys that stand for a role: reported for an owner or an admin, and never granted. */
export const roleKeys = { owner: 'organization.owner', admin: 'organization.admin' } as const;

/** Every key there is, as the API tells: `implies` with inclusions followed. */
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

/** Presets of keys with a name. Granting one grants its keys; the name is not kept. */
export const permissionProfiles = [
  {
    name: 'Engineer',
    description: 'Works on the clusters: sees them, logs in over SSH, uses Kubernetes',
    permissions: ['clusters.kubernetes', 'clusters.read', 'clusters.ssh', 'reservations.read'],
  },
] as const;
