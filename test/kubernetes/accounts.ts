/** Accounts at the fake API server, and RBAC's rules for what they may. */

export interface Rule {
  apiGroups: readonly string[];
  resources: readonly string[];
  verbs: readonly string[];
  resourceNames?: readonly string[];
}

export interface Account {
  user: string;
  rules: readonly Rule[];
}

export interface Ask {
  verb: string;
  group: string;
  resource: string;
  name?: string | undefined;
  namespace?: string | undefined;
}

/** The ClusterRole that the recordings were made with, as the server told it of the account (`rules-review`). */
export const leastPrivilege: readonly Rule[] = [
  {
    apiGroups: ['rbac.authorization.k8s.io'],
    resources: ['clusterrolebindings', 'rolebindings'],
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
  },
  {
    apiGroups: ['rbac.authorization.k8s.io'],
    resources: ['clusterroles'],
    verbs: ['bind'],
    resourceNames: ['view', 'edit', 'admin', 'cluster-admin'],
  },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['get'] },
  { apiGroups: [''], resources: ['namespaces', 'nodes'], verbs: ['list', 'watch'] },
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list'] },
  {
    apiGroups: ['ceph.rook.io'],
    resources: ['cephclusters', 'cephfilesystems', 'cephfilesystemsubvolumegroups'],
    verbs: ['list'],
  },
];

const everything: Rule = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] };

/** The same rules without a verb on bindings, or without one resource. */
export function without(what: { verb?: string; resource?: string }): Rule[] {
  return leastPrivilege.map((rule) => ({
    ...rule,
    resources: rule.resources.filter((resource) => resource !== what.resource),
    verbs: rule.verbs.filter((verb) => verb !== what.verb),
  }));
}

const serviceAccount = (name: string, rules: readonly Rule[]): Account => ({
  user: `system:serviceaccount:andromeda-system:${name}`,
  rules,
});

/** By token. */
export const accounts: Record<string, Account> = {
  andromeda: serviceAccount('andromeda', leastPrivilege),
  'no-create': serviceAccount('no-create', without({ verb: 'create' })),
  'no-patch': serviceAccount('no-patch', without({ verb: 'patch' })),
  admin: { user: 'admin', rules: [everything] },
  nobody: { user: 'user@example.org', rules: [] },
};

/** The token of the account that a recording says it was made as. */
export function tokenOf(as: string): string | undefined {
  if (as.startsWith('no Authorization')) return undefined;
  if (as.startsWith('a token')) return 'unknown';
  if (as.startsWith('admin')) return 'admin';
  if (as.startsWith('user@')) return 'nobody';
  return /andromeda-system\/([a-z-]+)/.exec(as)?.[1];
}

export function may({ rules }: Account, { verb, group, resource, name }: Ask): boolean {
  const holds = (list: readonly string[], one: string) => list.includes('*') || list.includes(one);
  return rules.some(
    (rule) =>
      holds(rule.apiGroups, group) &&
      holds(rule.resources, resource) &&
      holds(rule.verbs, verb) &&
      (rule.resourceNames === undefined || (name !== undefined && rule.resourceNames.includes(name))),
  );
}
