/**
 * Interprets the refusals of a Kubernetes API server, since one status stands for several causes. Also lists the
 * rights that the service needs there, and the smallest ClusterRole that gives them.
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

interface ErrorResponse {
  status: number;
  method: string;
  path: string;
  /** A Status object, or plain text. */
  body: StatusBody | string;
}

export interface Right {
  verb: string;
  /** Empty for the core group. */
  group: string;
  resource: string;
  name?: string;
}

export class KubernetesError extends Error {
  override readonly name = 'KubernetesError';
  readonly status: number;
  readonly body: StatusBody;
  readonly retryAfterSeconds: number | undefined;

  constructor({ status, method, path, body }: ErrorResponse, retryAfterSeconds?: number) {
    const known = typeof body === 'string' ? { message: body.trim() } : (body ?? {});
    super(`${method} ${path}: ${status} ${shortened(known.message ?? '')}`);
    this.status = status;
    this.body = known;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export type Refused =
  /** The credentials are missing or not accepted. */
  | { kind: 'credentials' }
  | { kind: 'right'; right: Right }
  | { kind: 'bind' }
  | { kind: 'namespace'; state: 'missing' | 'terminating' }
  | { kind: 'role' }
  /** The object, or the API itself, does not exist. */
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
    // The message names a binding, but the missing object is the role.
    return { kind: role !== undefined && details?.name === role ? 'role' : 'missing' };
  }
  if (status === 409) return { kind: reason === 'AlreadyExists' ? 'exists' : 'conflict' };
  // The name now belongs to another object.
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
  // The message lists every rule that our credentials would need: kilobytes.
  if (message.includes('is attempting to grant')) return { kind: 'bind' };
  return { kind: 'policy', message: shortened(message) };
}

/** `list nodes`, `bind clusterroles view (rbac.authorization.k8s.io)`. */
export function describeRight({ verb, group, resource, name }: Right): string {
  const what = name === undefined ? resource : `${resource} ${name}`;
  return `${verb} ${what}${group === '' ? '' : ` (${group})`}`;
}

/** Text of another program on one line, cut to 300 characters. */
export function shortened(text: string): string {
  return shortText(text.replace(/\p{C}+/gu, ' ').trim(), 300);
}

interface RbacRule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

function neededRules(roleIds: readonly string[]): RbacRule[] {
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

/** Optional rights, each with the fact that it adds to reports; optional since pod specifications can hold secrets. */
export const optionalRights: readonly (Right & { use: string })[] = [
  { verb: 'list', group: '', resource: 'pods', use: 'how many GPUs are in use' },
];

/** The required rights one by one, as an API server is asked about them. */
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
  /** The service's user name there; null if the server did not say. */
  user: string | null;
  /** The message of a failed query; null after a success. */
  fault: string | null;
  rights: { right: string; allowed: boolean }[];
  /** The optional rights and the fact that each adds to reports. */
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
