/**
 * Permissions on a Kubernetes cluster as RBAC bindings, and the plan of changes to them. Each organization permission
 * and each grant has a binding of its own, so that removing one never affects another.
 */
import { effectivePermissions, type Role } from '../access/permission.ts';

interface KubernetesPerson {
  userId: string;
  email: string;
  preferredUsername: string | null;
  subjects: readonly string[];
}

export interface KubernetesAccess {
  members: readonly (KubernetesPerson & { role: Role; permissions: readonly string[] })[];
  grants: readonly (KubernetesPerson & {
    grantId: string;
    relation: 'kubernetes.viewer' | 'kubernetes.developer' | 'kubernetes.admin';
    /** A namespace; null: the whole cluster. */
    scope: string | null;
    roleId: string | null;
  })[];
}

export interface UsernameRule {
  claim: string;
  /** As the API server's `--oidc-username-prefix`; undefined: its default. */
  prefix: string | undefined;
  issuer: string;
}

export interface Binding {
  name: string;
  namespace: string | null;
  role: string;
  subjects: readonly string[];
  labels: Readonly<Record<string, string>>;
}

/** A binding of ours as found in the cluster. Other programs may have changed any part of it. */
export interface FoundBinding {
  name: string;
  namespace: string | null;
  uid: string;
  resourceVersion: string;
  roleRef: { apiGroup?: string; kind?: string; name?: string };
  subjects: readonly { apiGroup?: string; kind?: string; name?: string; namespace?: string }[];
  labels: Readonly<Record<string, string>>;
  /** The field manager of its last change. */
  changedBy?: string | undefined;
}

export const rbacGroup = 'rbac.authorization.k8s.io';

/** The labels that identify our bindings. */
export function ownLabels(clusterId: string): Record<string, string> {
  return { 'app.kubernetes.io/managed-by': 'andromeda', 'andromeda/cluster': clusterId };
}

/** The name prefix of our bindings: it contains the cluster's ID, so that no other installation has the same. */
function ownPrefix(clusterId: string): string {
  return `andromeda.${clusterId}.`;
}

/**
 * A binding is ours by both labels, or by its name and one of our labels, if others were removed. `suspect`: it has
 * such a name but none of our labels, and may belong to another owner.
 */
export function ownership(
  { name, labels }: Pick<FoundBinding, 'name' | 'labels'>,
  clusterId: string,
): 'ours' | 'suspect' | 'foreign' {
  const own = Object.entries(ownLabels(clusterId));
  if (own.every(([label, value]) => labels[label] === value)) return 'ours';
  if (!name.startsWith(ownPrefix(clusterId))) return 'foreign';
  const isMarked = own.some(([label, value]) => labels[label] === value) || 'andromeda/user' in labels;
  return isMarked ? 'ours' : 'suspect';
}

export const relationRoles = {
  'kubernetes.viewer': { namespace: 'view', cluster: 'view' },
  'kubernetes.developer': { namespace: 'edit', cluster: 'edit' },
  'kubernetes.admin': { namespace: 'admin', cluster: 'cluster-admin' },
} as const;

/** The ClusterRoles that are bound for grants without a `role_id`; each includes those before it. */
export const boundRoles = ['view', 'edit', 'admin', 'cluster-admin'] as const;

const knownClaims: readonly string[] = ['email', 'sub', 'preferred_username'];

/** The bindings that should exist. A person whose name at the API server is not known yet, as before the first sign-in, has none. */
export function wantedBindings(clusterId: string, access: KubernetesAccess, rule: UsernameRule): Binding[] {
  const wanted: Binding[] = [];
  const add = (
    person: KubernetesPerson,
    id: string,
    rest: Pick<Binding, 'namespace' | 'role'>,
    labels: object,
  ) => {
    const subjects = usernames(person, rule);
    if (subjects.length === 0) return;
    const own = { ...ownLabels(clusterId), 'andromeda/user': person.userId, ...labels };
    wanted.push({ name: ownPrefix(clusterId) + id, ...rest, subjects, labels: own });
  };
  for (const member of access.members) {
    const role = memberRole(member);
    if (role === undefined) continue;
    add(member, `${member.userId}.${role}`, { namespace: null, role }, {});
  }
  for (const grant of access.grants) {
    const { grantId, scope, roleId, relation } = grant;
    const role = roleId ?? relationRoles[relation][scope === null ? 'cluster' : 'namespace'];
    add(grant, grantId, { namespace: scope, role }, { 'andromeda/grant': grantId });
  }
  return wanted;
}

/** The ClusterRole for a member's role and permissions; undefined for none. */
export function memberRole({
  role,
  permissions,
}: Pick<KubernetesAccess['members'][number], 'role' | 'permissions'>): 'edit' | 'cluster-admin' | undefined {
  const held = effectivePermissions(role, permissions);
  if (!held.has('clusters.kubernetes')) return undefined;
  return held.has('clusters.kubernetes.admin') ? 'cluster-admin' : 'edit';
}

/** The IDs of the permissions that people hold, even before their names at the API server are known. */
export function permissionIds({ members, grants }: KubernetesAccess): string[] {
  return [
    ...members.flatMap((member) => {
      const role = memberRole(member);
      return role === undefined ? [] : [`${member.userId}.${role}`];
    }),
    ...grants.map(({ grantId }) => grantId),
  ];
}

export function permissionIdOf({ name }: Pick<Binding, 'name'>, clusterId: string): string {
  return name.slice(ownPrefix(clusterId).length);
}

/** The reasons why people cannot be bound under the names that the API server would give them. */
export function nameFaults({ members, grants }: KubernetesAccess, rule: UsernameRule): string[] {
  const { claim } = rule;
  if (!knownClaims.includes(claim)) {
    const known = knownClaims.join(', ');
    return [
      `identity.kubernetes.usernameClaim is ${claim}, by which nobody is known here: it can be ${known}`,
    ];
  }
  const reserved = [...members, ...grants].filter((person) => namesOf(person, rule).some(isReserved));
  const emails = new Set(reserved.map(({ email }) => email));
  return [...emails].map(
    (email) => `The name of ${email} begins with system:, which Kubernetes keeps for itself`,
  );
}

function usernames(person: KubernetesPerson, rule: UsernameRule): string[] {
  return namesOf(person, rule)
    .filter((name) => !isReserved(name))
    .sort();
}

function isReserved(name: string): boolean {
  return name.startsWith('system:');
}

function namesOf(person: KubernetesPerson, { claim, prefix, issuer }: UsernameRule): string[] {
  const before = prefix === '-' ? '' : (prefix ?? (claim === 'email' ? '' : `${issuer}#`));
  return valuesOf(person, claim)
    .filter((value) => value !== '')
    .map((value) => before + value);
}

function valuesOf(person: KubernetesPerson, claim: string): readonly string[] {
  if (claim === 'email') return [person.email];
  if (claim === 'sub') return person.subjects;
  return claim === 'preferred_username' ? [person.preferredUsername ?? ''] : [];
}

export interface BindingPlan {
  kept: Binding[];
  remove: FoundBinding[];
  /** Some removed bindings come back with another role: RBAC cannot change a binding's role. */
  replaces: boolean;
  repair: { found: FoundBinding; binding: Binding }[];
  create: Binding[];
  /** Removed after the new binding, which gives the same person as much or more, exists. */
  handOver: { found: FoundBinding; binding: Binding }[];
  /** Bindings, by namespace, that wait for a namespace that is missing or being deleted. */
  waiting: Map<string, Binding[]>;
}

/** `namespaces` says for each namespace whether objects can be created in it; undefined if the list is unknown. */
export function planBindings(
  wanted: readonly Binding[],
  found: readonly FoundBinding[],
  namespaces: ReadonlyMap<string, boolean> | undefined,
): BindingPlan {
  const plan: BindingPlan = {
    kept: [],
    remove: [],
    replaces: false,
    repair: [],
    create: [],
    handOver: [],
    waiting: new Map(),
  };
  const there = new Map(found.map((one) => [keyOf(one), one]));
  for (const binding of wanted) {
    const key = keyOf(binding);
    const one = there.get(key);
    there.delete(key);
    if (one && hasRole(one, binding.role)) {
      if (isAsWanted(one, binding)) plan.kept.push(binding);
      else plan.repair.push({ found: one, binding });
    } else if (binding.namespace !== null && namespaces && !namespaces.get(binding.namespace)) {
      const others = plan.waiting.get(binding.namespace);
      if (others) others.push(binding);
      else plan.waiting.set(binding.namespace, [binding]);
      if (one) plan.remove.push(one);
    } else if (one) {
      plan.remove.push(one);
      plan.replaces = true;
    } else plan.create.push(binding);
  }
  const created = Map.groupBy(plan.create, ({ labels }) => labels['andromeda/user']);
  for (const found of there.values()) {
    const theirs = created.get(found.labels['andromeda/user']);
    const binding = theirs?.find((one) => isSuccessor(one, found));
    if (binding) plan.handOver.push({ found, binding });
    else plan.remove.push(found);
  }
  return plan;
}

/**
 * True if an organization permission that is about to be bound gives the person at least the role of another one of
 * theirs, as from `edit` to `cluster-admin`. Grants have no successor: one that ended is removed at once.
 */
function isSuccessor(binding: Binding, found: FoundBinding): boolean {
  const user = 'andromeda/user';
  if (binding.namespace !== null || found.namespace !== null) return false;
  if ('andromeda/grant' in binding.labels || 'andromeda/grant' in found.labels) return false;
  if (binding.labels[user] === undefined || binding.labels[user] !== found.labels[user]) return false;
  const before = found.roleRef.name ?? '';
  return hasRole(found, before) && isAtLeast(binding.role, before) && isOnlyFor(found, binding.subjects);
}

/** True if a built-in role includes another; an unknown role includes nothing. */
function isAtLeast(role: string, other: string): boolean {
  const ranks: readonly string[] = boundRoles;
  return ranks.includes(other) && ranks.indexOf(role) >= ranks.indexOf(other);
}

export function isAbove(role: string, other: string): boolean {
  return role !== other && isAtLeast(role, other);
}

function isOnlyFor({ subjects }: FoundBinding, names: readonly string[]): boolean {
  return subjects.every(
    ({ kind, apiGroup, name = '' }) => kind === 'User' && apiGroup === rbacGroup && names.includes(name),
  );
}

export function keyOf({ namespace, name }: Pick<Binding, 'namespace' | 'name'>): string {
  return `${namespace ?? ''}/${name}`;
}

export function hasRole({ roleRef }: FoundBinding, role: string): boolean {
  return roleRef.apiGroup === rbacGroup && roleRef.kind === 'ClusterRole' && roleRef.name === role;
}

export function isAsWanted(found: FoundBinding, binding: Binding): boolean {
  const { subjects } = found;
  if (subjects.length !== binding.subjects.length) return false;
  const names = subjects.map(({ name }) => name ?? '').sort();
  const areUsers = subjects.every(({ kind, apiGroup }) => kind === 'User' && apiGroup === rbacGroup);
  return (
    areUsers &&
    binding.subjects.every((name, index) => name === names[index]) &&
    Object.entries(binding.labels).every(([label, value]) => found.labels[label] === value)
  );
}

type AccessState =
  /** The permissions are bound as they should be. */
  | 'applied'
  /** The changes are on their way; removed permissions may still be bound. */
  | 'pending'
  /** The changes cannot be applied; `message` says why. */
  | 'failed'
  /** The cluster has not reported the bindings recently. */
  | 'unknown'
  /** There are no permissions, and there should be none. */
  | 'none';

export interface Access<State extends AccessState = AccessState> {
  state: State;
  message?: string;
}

interface BoundFacts {
  bound: readonly string[] | undefined;
  isReachable: boolean;
  failure: string | undefined;
}

export interface KubernetesAccessFacts extends BoundFacts {
  /** The permissions that the person should have on the cluster now, without lapsed ones. */
  access: KubernetesAccess;
  userId: string;
  /** The IDs of all grants that the person ever had there, so that a binding left from an ended grant is recognized. */
  everGranted: readonly string[];
}

export function kubernetesAccessState(facts: KubernetesAccessFacts): Access {
  const { access, userId, everGranted } = facts;
  const wanted = permissionIds(access);
  return observedState(facts, (bound) => {
    const own = bound.filter((id) => id.startsWith(`${userId}.`) || everGranted.includes(id));
    if (own.length !== wanted.length || !wanted.every((id) => own.includes(id))) return undefined;
    return wanted.length === 0 ? 'none' : 'applied';
  });
}

export function grantAccessState(
  grantId: string,
  facts: BoundFacts,
): Access<'applied' | 'pending' | 'failed' | 'unknown'> {
  return observedState(facts, (bound) => (bound.includes(grantId) ? 'applied' : undefined));
}

function observedState<State extends AccessState>(
  { bound, isReachable, failure }: BoundFacts,
  settled: (bound: readonly string[]) => State | undefined,
): Access<State | 'pending' | 'failed' | 'unknown'> {
  const message = failure === undefined ? {} : { message: failure };
  if (!bound || !isReachable) return { state: 'unknown', ...message };
  const state = settled(bound);
  if (state !== undefined) return { state };
  return { state: failure === undefined ? 'pending' : 'failed', ...message };
}
