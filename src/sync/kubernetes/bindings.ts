/** RBAC bindings at an API server: converts them, and builds the requests that create, repair and remove ours. */
import { type Binding, type FoundBinding, ownLabels, rbacGroup } from '../../domain/kubernetes/bindings.ts';
import type { KubernetesRequest } from './client.ts';

const root = `/apis/${rbacGroup}/v1`;
export const fieldManager = 'andromeda';

export type BindingKind = 'clusterrolebindings' | 'rolebindings';

export interface BindingItem {
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    labels?: Record<string, string>;
    managedFields?: { manager?: string; time?: string }[];
  };
  roleRef?: FoundBinding['roleRef'];
  subjects?: FoundBinding['subjects'];
}

export function pathOfKind(kind: BindingKind): string {
  return `${root}/${kind}`;
}

export function labelSelector(clusterId: string): string {
  return Object.entries(ownLabels(clusterId))
    .map(([label, value]) => `${label}=${value}`)
    .join();
}

export function foundOf({ metadata, roleRef = {}, subjects = [] }: BindingItem): FoundBinding {
  const changes = metadata.managedFields?.toSorted((a, b) => (a.time ?? '').localeCompare(b.time ?? ''));
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? null,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    roleRef,
    subjects,
    labels: metadata.labels ?? {},
    changedBy: changes?.at(-1)?.manager,
  };
}

/** The request that creates a binding. A POST never changes an existing object of that name, as an apply would. */
export function creation(binding: Binding): KubernetesRequest {
  const body = objectOf(binding, { name: binding.name });
  return { method: 'POST', path: collectionOf(binding.namespace), query: { fieldManager }, body };
}

/** The request that restores our binding after a change: a forced apply, bound to the UID and resourceVersion that were listed. */
export function repair(found: FoundBinding, binding: Binding): KubernetesRequest {
  const { name, uid, resourceVersion } = found;
  const body = objectOf(binding, { name, uid, resourceVersion });
  const query = { fieldManager, force: 'true' };
  return { method: 'PATCH', path: pathOf(found), query, body, type: 'application/apply-patch+yaml' };
}

export function removal(found: FoundBinding): KubernetesRequest {
  const { uid, resourceVersion } = found;
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } };
  return { method: 'DELETE', path: pathOf(found), body };
}

export function pathOfRole(name: string): string {
  return `${root}/clusterroles/${encodeURIComponent(name)}`;
}

/** Kind and name as people search for it, such as `RoleBinding team-a/name`. */
export function nameOf({ namespace, name }: Pick<Binding, 'namespace' | 'name'>): string {
  return namespace === null ? `ClusterRoleBinding ${name}` : `RoleBinding ${namespace}/${name}`;
}

function collectionOf(namespace: string | null): string {
  return namespace === null
    ? `${root}/clusterrolebindings`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/rolebindings`;
}

function pathOf({ namespace, name }: Pick<Binding, 'namespace' | 'name'>): string {
  return `${collectionOf(namespace)}/${encodeURIComponent(name)}`;
}

function objectOf({ namespace, role, subjects, labels }: Binding, identity: object) {
  return {
    apiVersion: `${rbacGroup}/v1`,
    kind: namespace === null ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { ...identity, labels, ...(namespace === null ? {} : { namespace }) },
    roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name: role },
    subjects: subjects.map((name) => ({ apiGroup: rbacGroup, kind: 'User', name })),
  };
}
