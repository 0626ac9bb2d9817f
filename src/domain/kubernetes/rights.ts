/** The rights that we need at a Kubernetes API server, and the smallest ClusterRole that gives them. */
import { boundRoles, rbacGroup } from './bindings.ts';
import type { Right } from './status.ts';

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

/** The rules, with every role that a grant names. */
function neededRules(roleIds: readonly string[]): Rule[] {
  return [
    {
      apiGroups: [rbacGroup],
      resources: ['clusterrolebindings', 'rolebindings'],
      verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    },
    {
      apiGroups: [rbacGroup],
      resources: ['clusterroles'],
      verbs: ['bind'],
      resourceNames: [...new Set([...boundRoles, ...roleIds])],
    },
    { apiGroups: [rbacGroup], resources: ['clusterroles'], verbs: ['get'] },
    { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['nodes'], verbs: ['list'] },
    { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list'] },
    {
      apiGroups: ['ceph.rook.io'],
      resources: ['cephclusters', 'cephfilesystems', 'cephfilesystemsubvolumegroups'],
      verbs: ['list'],
    },
  ];
}

/** Not needed: what it would say more with them. Specifications of pods can hold what is none of ours. */
export const optionalRights: readonly (Right & { use: string })[] = [
  { verb: 'list', group: '', resource: 'pods', use: 'how many GPUs are in use' },
];

/** The same, right by right, as an API server is asked for them. */
export function neededRights(roleIds: readonly string[]): Right[] {
  return neededRules(roleIds).flatMap(({ apiGroups, resources, verbs, resourceNames }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) =>
          resourceNames
            ? resourceNames.map((name) => ({ verb, group, resource, name }))
            : [{ verb, group, resource }],
        ),
      ),
    ),
  );
}

export interface KubernetesCheck {
  server: string;
  /** Who we are there; null where it did not say. */
  user: string | null;
  /** In words, why it could not be asked; null where it could. */
  fault: string | null;
  rights: { right: string; allowed: boolean }[];
  /** What it would say more with each. */
  optional: { right: string; allowed: boolean; use: string }[];
  cluster_role: ReturnType<typeof leastPrivilege>;
}

/** As `kubectl apply` takes it. */
export function leastPrivilege(roleIds: readonly string[]) {
  return {
    apiVersion: `${rbacGroup}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'andromeda' },
    rules: neededRules(roleIds),
  };
}
