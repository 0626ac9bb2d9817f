/** RBAC bindings as the fake API server keeps them: create, server-side apply, delete, list. */
import { randomUUID } from 'node:crypto';
import { type Account, type Ask, may } from './accounts.ts';
import type { Answer } from './recorded.ts';
import {
  alreadyExists,
  conflict,
  forbidden,
  invalid,
  namespaceMissing,
  namespaceTerminating,
  notBindable,
  notFound,
} from './statuses.ts';
import type { Changes } from './watches.ts';

export interface BindingObject {
  kind: string;
  apiVersion: string;
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    creationTimestamp: string;
    labels?: Record<string, string>;
  };
  subjects?: { kind: string; apiGroup?: string; name: string }[];
  roleRef: { apiGroup: string; kind: string; name: string };
}

type Sent = Pick<BindingObject, 'roleRef' | 'subjects'> & {
  metadata: { name: string; labels?: Record<string, string>; uid?: string; resourceVersion?: string };
};

export interface Bindings {
  /** By `namespace/name`. */
  readonly all: ReadonlyMap<string, BindingObject>;
  get(ask: Ask): Answer;
  list(ask: Ask, labels: Record<string, string>): Answer;
  /** `isDryRun`: it is judged like any other, and not made. */
  create(ask: Ask, account: Account, sent: Sent, isDryRun?: boolean): Answer;
  apply(ask: Ask, account: Account, sent: Sent, force: boolean): Answer;
  remove(ask: Ask, preconditions: { uid?: string; resourceVersion?: string }): Answer;
  /** What somebody does to one besides: whatever they like. */
  edit(key: string, change: (binding: BindingObject) => void): void;
  drop(key: string): void;
}

export interface World {
  /** Whether each is still taking something new. */
  namespaces: Map<string, boolean>;
  clusterRoles: Set<string>;
}

const json = { 'content-type': 'application/json' };
const kindOf = ({ resource }: Ask) => (resource === 'rolebindings' ? 'RoleBinding' : 'ClusterRoleBinding');

export function createBindings(world: World, changes: Changes): Bindings {
  const all = new Map<string, BindingObject>();
  const resourceOf = ({ kind }: BindingObject) => `${kind.toLowerCase()}s`;
  const keyOf = ({ namespace, name }: Ask) => `${namespace ?? ''}/${name}`;

  function put(ask: Ask, sent: Sent, before: BindingObject | undefined, isDryRun = false): BindingObject {
    const { namespace, name = '' } = ask;
    const next: BindingObject = {
      kind: kindOf(ask),
      apiVersion: 'rbac.authorization.k8s.io/v1',
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        uid: before?.metadata.uid ?? randomUUID(),
        resourceVersion: before?.metadata.resourceVersion ?? '',
        creationTimestamp: before?.metadata.creationTimestamp ?? '2026-11-20T23:55:28Z',
        labels: { ...before?.metadata.labels, ...sent.metadata.labels },
      },
      ...(sent.subjects ? { subjects: sent.subjects } : {}),
      roleRef: sent.roleRef,
    };
    if (before && sorted(before) === sorted(next)) return before;
    if (isDryRun) return next;
    changes.next((version) => {
      next.metadata.resourceVersion = String(version);
      return { resource: resourceOf(next), before, after: next };
    });
    all.set(keyOf(ask), next);
    return next;
  }

  /** What stands in the way of a new or a changed binding, in the order in which the server finds it. */
  function refusal(ask: Ask, account: Account, { roleRef }: Sent, isNew: boolean): Answer | undefined {
    const { namespace } = ask;
    if (namespace !== undefined && isNew) {
      if (!world.namespaces.has(namespace)) return namespaceMissing(namespace);
      if (!world.namespaces.get(namespace)) return namespaceTerminating(ask, namespace);
    }
    const bind = { verb: 'bind', group: ask.group, resource: 'clusterroles', name: roleRef.name };
    if (may(account, bind)) return undefined;
    return world.clusterRoles.has(roleRef.name)
      ? notBindable(ask, account.user)
      : notFound(ask, roleRef.name);
  }

  function create(ask: Ask, account: Account, sent: Sent, isDryRun = false): Answer {
    const refused = refusal(ask, account, sent, true);
    if (refused) return refused;
    if (all.has(keyOf(ask))) return alreadyExists(ask);
    return { status: 201, headers: json, body: put(ask, sent, undefined, isDryRun) };
  }

  function drop(key: string): void {
    const before = all.get(key);
    all.delete(key);
    if (before) changes.next(() => ({ resource: resourceOf(before), before, after: undefined }));
  }

  return {
    all,
    get(ask) {
      const found = all.get(keyOf(ask));
      return found ? { status: 200, headers: json, body: found } : notFound(ask);
    },
    list({ resource, group, namespace }, labels) {
      const items = [...all.values()]
        .filter(({ kind }) => kind === kindOf({ resource, group, verb: 'list' }))
        .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
        .filter(({ metadata }) =>
          Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value),
        )
        .map(({ kind: _, apiVersion: __, ...item }) => item);
      const kind = `${kindOf({ resource, group, verb: 'list' })}List`;
      const body = {
        kind,
        apiVersion: `${group}/v1`,
        metadata: { resourceVersion: String(changes.version) },
        items,
      };
      return { status: 200, headers: json, body };
    },
    create,
    apply(ask, account, sent, force) {
      const before = all.get(keyOf(ask));
      const { uid, resourceVersion } = sent.metadata;
      if (!before) {
        if (uid !== undefined) {
          const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
          return conflict(ask, why);
        }
        const asCreate = { ...ask, verb: 'create' };
        return may(account, asCreate) ? create(ask, account, sent) : forbidden(asCreate, account.user);
      }
      if (uid !== undefined && uid !== before.metadata.uid) {
        return invalid(ask, kindOf(ask), 'metadata.uid', `"${uid}"`, 'field is immutable', 2);
      }
      if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
        const why =
          'the object has been modified; please apply your changes to the latest version and try again';
        return conflict(ask, why);
      }
      if (!force) throw new Error('who owns which field is not faked: apply by force');
      if (sorted(before.roleRef) !== sorted(sent.roleRef)) {
        const { apiGroup, kind, name } = sent.roleRef;
        const value = JSON.stringify({ APIGroup: apiGroup, Kind: kind, Name: name });
        return invalid(ask, kindOf(ask), 'roleRef', value, 'cannot change roleRef');
      }
      const refused = refusal(ask, account, sent, false);
      return refused ?? { status: 200, headers: json, body: put(ask, sent, before) };
    },
    remove(ask, preconditions) {
      const before = all.get(keyOf(ask));
      if (!before) return notFound(ask);
      const { uid, resourceVersion } = before.metadata;
      const differs = (name: string, wanted: string | undefined, is: string, what: string) =>
        wanted === undefined || wanted === is
          ? undefined
          : conflict(
              ask,
              `the ${name} in the precondition (${wanted}) does not match the ${name} in record (${is}). The object might have been ${what}`,
              kindOf(ask),
            );
      const refused =
        differs('UID', preconditions.uid, uid, 'deleted and then recreated') ??
        differs('ResourceVersion', preconditions.resourceVersion, resourceVersion, 'modified');
      if (refused) return refused;
      drop(keyOf(ask));
      const details = { name: ask.name, group: ask.group, kind: ask.resource, uid };
      const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
      return { status: 200, headers: json, body };
    },
    edit(key, change) {
      const binding = all.get(key);
      if (!binding) throw new Error(`there is no ${key}`);
      const before = structuredClone(binding);
      change(binding);
      changes.next((version) => {
        binding.metadata.resourceVersion = String(version);
        return { resource: resourceOf(binding), before, after: binding };
      });
    },
    drop,
  };
}

function sorted(value: object): string {
  return JSON.stringify(value, (_, inner) =>
    inner && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort())
      : inner,
  );
}
