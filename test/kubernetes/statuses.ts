/** The refusals of an API server, in its words (`recordings.jsonl`). */
import type { Ask } from './accounts.ts';
import type { Answer } from './recorded.ts';

const json = { 'content-type': 'application/json' };

function failure(status: number, reason: string, message: string, details: object): Answer {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    details,
  };
  return { status, headers: json, body: { ...body, code: status } };
}

const qualified = ({ resource, group }: Pick<Ask, 'resource' | 'group'>) =>
  group === '' ? resource : `${resource}.${group}`;

const detailsOf = ({ resource, group, name }: Ask) => ({
  ...(name === undefined ? {} : { name }),
  ...(group === '' ? {} : { group }),
  kind: resource,
});

export function forbidden(ask: Ask, user: string): Answer {
  const { verb, group, resource, name, namespace } = ask;
  const what = name === undefined ? qualified(ask) : `${qualified(ask)} "${name}"`;
  const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const message = `${what} is forbidden: User "${user}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`;
  return failure(403, 'Forbidden', message, detailsOf(ask));
}

/** The rules that the role has are at the end, kilobytes of them for `view`. */
export function notBindable(ask: Ask, user: string): Answer {
  const groups =
    '(groups=["system:serviceaccounts" "system:serviceaccounts:andromeda-system" "system:authenticated"])';
  const rules = '{APIGroups:[""], Resources:["resourcequotas"], Verbs:["get" "list"]}';
  const message = `${qualified(ask)} "${ask.name}" is forbidden: user "${user}" ${groups} is attempting to grant RBAC permissions not currently held:\n${rules}`;
  return failure(403, 'Forbidden', message, detailsOf(ask));
}

export function notFound(ask: Ask, name = ask.name): Answer {
  const details = { ...detailsOf(ask), name };
  return failure(404, 'NotFound', `${qualified(ask)} "${name}" not found`, details);
}

export function namespaceMissing(namespace: string): Answer {
  return failure(404, 'NotFound', `namespaces "${namespace}" not found`, {
    name: namespace,
    kind: 'namespaces',
  });
}

export function namespaceTerminating(ask: Ask, namespace: string): Answer {
  const message = `${qualified(ask)} "${ask.name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`;
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  return failure(403, 'Forbidden', message, { ...detailsOf(ask), causes: [cause] });
}

export function alreadyExists(ask: Ask): Answer {
  return failure(409, 'AlreadyExists', `${qualified(ask)} "${ask.name}" already exists`, detailsOf(ask));
}

export function conflict(ask: Ask, why: string, kind = ask.resource): Answer {
  const what = kind === ask.resource ? qualified(ask) : `${kind}.${ask.group}`;
  const message = `Operation cannot be fulfilled on ${what} "${ask.name}": ${why}`;
  return failure(409, 'Conflict', message, { ...detailsOf(ask), kind });
}

/** `causes` twice for a uid, as recorded. */
export function invalid(
  ask: Ask,
  kind: string,
  field: string,
  value: string,
  why: string,
  times = 1,
): Answer {
  const cause = { reason: 'FieldValueInvalid', message: `Invalid value: ${value}: ${why}`, field };
  const message = `${kind}.${ask.group} "${ask.name}" is invalid: ${field}: Invalid value: ${value}: ${why}`;
  const details = { name: ask.name, group: ask.group, kind, causes: Array(times).fill(cause) };
  return failure(422, 'Invalid', message, details);
}
