/**
 * What a Kubernetes API server refuses, and what that means: the same status stands for several things. And the rights that we need
 * there, with the smallest ClusterRole that gives them.
 */
import { shortText } from '../text.ts';
import { boundRoles, rbacGroup } from './bindings.ts';

export interface StatusBody {
  reason?: string;
  message?: string;
  details?: {
    name?: string;
    kind?: string;
    causes?: { reason?: string; message?: string; field?: string }[];
  };
}

interface Refusal {
  status: number;
  method: string;
  path: string;
  /** A Status, or plain text. */
  body: StatusBody | string;
}

export interface Right {
  verb: string;
  /** Empty: the core group. */
  group: string;
  resource: string;
  name?: string;
}

export class KubernetesError extends Error {
  override readonly name = 'KubernetesError';
  readonly status: number;
  readonly body: StatusBody;
  readonly retryAfterSeconds: number | undefined;

  constructor({ status, method, path, body }: Refusal, retryAfterSeconds?: number) {
    const known = typeof body === 'string' ? { message: body.trim() } : (body ?? {});
    super(`${method} ${path}: ${status} ${shortened(known.message ?? '')}`);
    this.status = status;
    this.body = known;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export type Refused =
  /** The credentials are not accepted, or were not sent. */
  | { kind: 'credentials' }
  | { kind: 'right'; right: Right }
  | { kind: 'bind' }
  | { kind: 'namespace'; state: 'missing' | 'terminating' }
  | { kind: 'role' }
  /** Nothing is there, or the API itself is not. */
  | { kind: 'missing' }
  | { kind: 'exists' }
  | { kind: 'conflict' }
  | { kind: 'policy'; message: string }
  | { kind: 'trouble'; message: string }
  | { kind: 'refused'; message: string };

const right = /cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"/;

export function meaningOf({ status, body }: KubernetesError, role?: string): Refused {
  const { message = '', reason, details } = body;
  if (status === 401 || message.includes('"system:anonymous"')) return { kind: 'credentials' };
  if (status === 403) return forbidden(body);
  if (status === 404) {
    if (details?.kind === 'namespaces') return { kind: 'namespace', state: 'missing' };
    // The message speaks of a binding, and means the role.
    return { kind: role !== undefined && details?.name === role ? 'role' : 'missing' };
  }
  if (status === 409) return { kind: reason === 'AlreadyExists' ? 'exists' : 'conflict' };
  // Another one has the name now.
  if (details?.causes?.some(({ field }) => field === 'metadata.uid' || field === 'roleRef')) {
    return { kind: 'conflict' };
  }
  if (status === 429 || status >= 500) return { kind: 'trouble', message: shortened(message) };
  return { kind: 'refused', message: shortened(message) };
}

function forbidden({ message = '', details }: StatusBody): Refused {
  if (details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating')) {
    return { kind: 'namespace', state: 'terminating' };
  }
  const [, verb, resource, group] = right.exec(message) ?? [];
  if (verb !== undefined && resource !== undefined) {
    return { kind: 'right', right: { verb, resource, group: group ?? '' } };
  }
  // With every rule that we would have to hold ourselves: kilobytes.
  if (message.includes('is attempting to grant')) return { kind: 'bind' };
  return { kind: 'policy', message: shortened(message) };
}

/** `list nodes`, `bind clusterroles view (rbac.authorization.k8s.io)`. */
export function describeRight({ verb, group, resource, name }: Right): string {
  const what = name === undefined ? resource : `${resource} ${name}`;
  return `${verb} ${what}${group === '' ? '' : ` (${group})`}`;
}

/** Other people's words at a length that fits, on one line. */
export function shortened(text: string): string {
  return shortText(text.replace(/\p{C}+/gu, ' ').trim(), 300);
}

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

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

export function leastPrivilege(roleIds: readonly string[]) {
  return {
    apiVersion: `${rbacGroup}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'andromeda' },
    rules: neededRules(roleIds),
  };
}
