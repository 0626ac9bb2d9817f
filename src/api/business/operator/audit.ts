/** The audit trail with its heads, the gateway's keys, and its open and past sessions, for operators. */
import { notFound } from '../../../domain/error.ts';
import { present } from '../../../domain/present.ts';
import {
  type AuditListing,
  findCheckpoint,
  findNamesIn,
  listAuditEntries,
  listHeads,
} from '../../../store/audit/audit.ts';
import { listPastSessions } from '../../../store/audit/past-sessions.ts';
import type { Operation } from '../operation.ts';
import { closing, openSessions, pastSessionBody, utcTimes } from '../ssh-sessions.ts';
import { auditorReads, requireOperator, staffReads, subjectsOf } from './about.ts';

export const operatorListAuditEntries = auditorReads<'operatorListAuditEntries'>(
  async ({ store }, { query }) => {
    const { operation, result, order = 'oldest', limit = 100, after = 0, ...asked } = query;
    const filter = { ...(await subjectsOf(store.read, asked)), operation, result, ...utcTimes(asked) };
    const entries = await listAuditEntries(store.read, filter, { after, limit, order });
    const names = await findNamesIn(store.read, entries);
    return { entries: entries.map((entry) => entryBody(entry, names)) };
  },
);

function entryBody(listing: AuditListing, names: Awaited<ReturnType<typeof findNamesIn>>) {
  const { command_id, organization_id, cluster_id, subject_user_id, redaction, ...entry } = listing;
  const { actor_user_id } = entry;
  const subject = names.people.get(subject_user_id ?? '');
  return {
    ...entry,
    ...present({ command_id, organization_id, cluster_id, subject_user_id, redaction }),
    ...present({
      actor_name: names.people.get(actor_user_id)?.name,
      subject_name: subject?.name,
      subject_email: subject?.email,
      organization_name: names.organizations.get(organization_id ?? '')?.name,
      cluster_name: names.clusters.get(cluster_id ?? '')?.name,
    }),
  };
}

/** The trail's current head, signed now if it was not yet. */
export const operatorGetAuditHead = auditorReads<'operatorGetAuditHead'>(async ({ audit }) => {
  const head = await audit.sign();
  if (!head) throw notFound('The audit trail has no entry yet.');
  return head;
});

export const operatorListAuditHeads = auditorReads<'operatorListAuditHeads'>(async ({ store, audit }) => {
  const checkpoint = await findCheckpoint(store.read);
  const heads = await listHeads(store.read, { after: 0, limit: 1000 });
  const [key = '', ...otherKeys] = audit.publicKeys();
  return { key, other_keys: otherKeys, heads, ...(checkpoint && { checkpoint }) };
});

export const operatorGetGateway = staffReads<'operatorGetGateway'>(async ({ gateway }) => {
  const { hostname, port, hostKeys, publicKeys } = gateway;
  const [hostKey = '', ...otherHostKeys] = hostKeys;
  const [publicKey = '', ...otherPublicKeys] = publicKeys;
  return {
    hostname,
    port,
    host_key: hostKey,
    other_host_keys: otherHostKeys,
    public_key: publicKey,
    other_public_keys: otherPublicKeys,
  };
});

export const operatorListSessions = staffReads<'operatorListSessions'>((deps) =>
  openSessions(deps, () => true),
);

/** Past sessions, the last to end first. They reveal as much about people as the audit trail. */
export const operatorListPastSessions = auditorReads<'operatorListPastSessions'>(
  async ({ store }, { query }) => {
    const { address, key, after: before, limit = 100, ...asked } = query;
    const filter = { ...(await subjectsOf(store.read, asked)), address, key, ...utcTimes(asked) };
    const sessions = await listPastSessions(store.read, filter, { before, limit });
    return { sessions: sessions.map(pastSessionBody) };
  },
);

export const operatorCloseSession: Operation<'operatorCloseSession'> = (deps, request) =>
  closing(deps, request, {
    operation: 'operatorCloseSession',
    authorize: requireOperator,
    text: `An operator has closed this session: ${request.command.auditReason}`,
    isTheirs: () => true,
    absent: 'There is no such session any more.',
  });
