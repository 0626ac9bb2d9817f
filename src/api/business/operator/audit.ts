/** The audit trail, for those who may read it. */
import { notFound } from '../../../domain/error.ts';
import { present } from '../../../domain/present.ts';
import {
  type AuditListing,
  findCheckpoint,
  findNamesIn,
  listAuditEntries,
  listHeads,
} from '../../../store/audit/audit.ts';
import { utcTimes } from '../ssh-sessions.ts';
import { auditorReads, subjectsOf } from './about.ts';

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

/** The trail's head as it is now, signed on the spot where it was not. */
export const operatorGetAuditHead = auditorReads<'operatorGetAuditHead'>(async ({ audit }) => {
  const head = await audit.sign();
  if (!head) throw notFound('The audit trail has no entry yet.');
  return head;
});

/** Every signed head that is kept, oldest first, and the keys of this installation. */
export const operatorListAuditHeads = auditorReads<'operatorListAuditHeads'>(async ({ store, audit }) => {
  const checkpoint = await findCheckpoint(store.read);
  const heads = await listHeads(store.read, { after: 0, limit: 1000 });
  const [key = '', ...otherKeys] = audit.publicKeys();
  return { key, other_keys: otherKeys, heads, ...(checkpoint && { checkpoint }) };
});
