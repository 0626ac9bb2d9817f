/** RBAC bindings at an API server: which of ours are there, and what is done to them, several at the same time. */
import { type Binding, type FoundBinding, ownLabels, rbacGroup } from '../../domain/kubernetes/bindings.ts';
import type { KubernetesClient } from './client.ts';

const root = `/apis/${rbacGroup}/v1`;
const fieldManager = 'andromeda';
/** Writes are as fast as the server's store flushes many together. It asks us to wait (429) where they are too many for it. */
const atOnce = 64;

export type BindingKind = 'clusterrolebindings' | 'rolebindings';

export interface BindingItem {
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    labels?: Record<string, string>;
  };
  roleRef?: FoundBinding['roleRef'];
  subjects?: FoundBinding['subjects'];
}

/** Where the bindings of a kind are listed and watched, in all namespaces. */
export function pathOfKind(kind: BindingKind): string {
  return `${root}/${kind}`;
}

export function labelSelector(clusterId: string): string {
  return Object.entries(ownLabels(clusterId))
    .map(([label, value]) => `${label}=${value}`)
    .join();
}

/**
 * Those of one kind with our labels, or all of them (`clusterId` left out), in all namespaces, in one request: gzip makes
 * a twentieth of it, and pages would only add some.
 */
export async function listBindings(
  client: KubernetesClient,
  kind: BindingKind,
  clusterId: string | undefined,
  signal: AbortSignal,
): Promise<FoundBinding[]> {
  const query = clusterId === undefined ? {} : { labelSelector: labelSelector(clusterId) };
  const request = { path: pathOfKind(kind), query };
  const { items } = await client.request<{ items: BindingItem[] | null }>(request, signal);
  return (items ?? []).map(foundOf);
}

/** A binding as the server shows it. */
export function foundOf({ metadata, roleRef = {}, subjects = [] }: BindingItem): FoundBinding {
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? null,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    roleRef,
    subjects,
    labels: metadata.labels ?? {},
  };
}

/**
 * Makes a binding. A POST never touches what has the name already, as an apply would. `isTrial`: only asks the server whether it
 * would, under a name that nothing has.
 */
export async function createBinding(
  client: KubernetesClient,
  binding: Binding,
  signal: AbortSignal,
  isTrial = false,
): Promise<void> {
  const body = objectOf(binding, { name: isTrial ? `${binding.name}.try` : binding.name });
  const path = collectionOf(binding.namespace);
  const query = { fieldManager, ...(isTrial && { dryRun: 'All' }) };
  await client.request({ method: 'POST', path, query, body }, signal);
}

/** Restores a binding of ours that was changed: a forced apply, bound to the UID and resourceVersion that were listed. */
export async function repairBinding(
  client: KubernetesClient,
  { found, binding }: { found: FoundBinding; binding: Binding },
  signal: AbortSignal,
): Promise<void> {
  const { name, uid, resourceVersion } = found;
  const body = objectOf(binding, { name, uid, resourceVersion });
  const query = { fieldManager, force: 'true' };
  const type = 'application/apply-patch+yaml';
  await client.request({ method: 'PATCH', path: pathOf(found), query, body, type }, signal);
}

/** Removes one of ours as it was when it was listed. */
export async function removeBinding(
  client: KubernetesClient,
  found: FoundBinding,
  signal: AbortSignal,
): Promise<void> {
  const { uid, resourceVersion } = found;
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } };
  await client.request({ method: 'DELETE', path: pathOf(found), body }, signal);
}

/** Checks that there is a ClusterRole of this name. Throws the server's refusal: 404 where there is none. */
export async function findClusterRole(
  client: KubernetesClient,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  await client.request({ path: `${root}/clusterroles/${encodeURIComponent(name)}` }, signal);
}

/** `RoleBinding team-a/name`, as people look for it. */
export function nameOf({ namespace, name }: Pick<Binding, 'namespace' | 'name'>): string {
  return namespace === null ? `ClusterRoleBinding ${name}` : `RoleBinding ${namespace}/${name}`;
}

/** Does something for each item, several at the same time. Throws the first error, and begins no more items then. */
export async function forEach<T>(items: readonly T[], body: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  let isOver = false;
  const worker = async () => {
    try {
      for (const item of waiting) {
        if (isOver) return;
        await body(item);
      }
    } catch (error) {
      isOver = true;
      throw error;
    }
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
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
