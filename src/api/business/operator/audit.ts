/** The audit trail, for those who may read it. */
import { DomainError } from '../../../domain/error.ts';
import { findCheckpoint, listAuditEntries, listHeads } from '../../../store/audit/audit.ts';
import { fromTime, toTime } from '../../../store/engine/time.ts';
import type { Operation } from '../operation.ts';
import { clusterOf, personOf } from './about.ts';
import { requireStaff } from './staff.ts';

/** A page of the trail. */
export const operatorListAuditEntries: Operation<'operatorListAuditEntries'> = async (
  { store },
  { caller, query },
) => {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const { person, cluster, operation, from, to, order = 'oldest', limit = 100, after = 0 } = query;
  const filter = {
    userId: person === undefined ? undefined : await personOf(store.read, person),
    clusterId: cluster === undefined ? undefined : await clusterOf(store.read, cluster),
    operation,
    from: from === undefined ? undefined : toTime(fromTime(from)),
    to: to === undefined ? undefined : toTime(fromTime(to)),
  };
  const entries = await listAuditEntries(store.read, filter, { after, limit, order });
  return {
    entries: entries.map(
      ({ command_id, organization_id, cluster_id, subject_user_id, redaction, ...entry }) => ({
        ...entry,
        ...(command_id === null ? {} : { command_id }),
        ...(organization_id === null ? {} : { organization_id }),
        ...(cluster_id === null ? {} : { cluster_id }),
        ...(subject_user_id === null ? {} : { subject_user_id }),
        ...(redaction === null ? {} : { redaction }),
      }),
    ),
  };
};

/** The trail's head as it is now, signed on the spot where it was not. */
export const operatorGetAuditHead: Operation<'operatorGetAuditHead'> = async (
  { store, audit },
  { caller },
) => {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const head = await audit.sign();
  if (!head) throw new DomainError('not_found', 'The audit trail has no entry yet.');
  return head;
};

/** Every signed head that is kept, oldest first, and the key of this installation. */
export const operatorListAuditHeads: Operation<'operatorListAuditHeads'> = async (
  { store, audit },
  { caller },
) => {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const checkpoint = await findCheckpoint(store.read);
  const heads = await listHeads(store.read, { after: 0, limit: 1000 });
  return { key: audit.publicKey, heads, ...(checkpoint && { checkpoint }) };
};
