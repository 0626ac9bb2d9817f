/** The audit trail, for those who may read it. */

import { DomainError } from '../../domain/error.ts';
import { isUuid } from '../../domain/id.ts';
import { listAuditEntries } from '../../store/audit.ts';
import { findCheckpoint, listHeads } from '../../store/audit-heads.ts';
import { findClusterByName } from '../../store/clusters.ts';
import type { Reader } from '../../store/index.ts';
import { findPersonByEmail } from '../../store/people.ts';
import { fromTime, toTime } from '../../store/time.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../operation.ts';
import { requireStaff } from './staff.ts';

/** A page of the trail. */
export async function operatorListAuditEntries(
  { store }: BusinessDeps,
  { caller, query }: BusinessRequest<'operatorListAuditEntries'>,
): Promise<BusinessReply<'operatorListAuditEntries'>> {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const { person, cluster, from, to, order = 'oldest', limit = 100, after = 0 } = query;
  const filter = {
    userId: person === undefined ? undefined : await personOf(store.read, person),
    clusterId: cluster === undefined ? undefined : await clusterOf(store.read, cluster),
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
}

/** The trail's head as it is now, signed on the spot where it was not. */
export async function operatorGetAuditHead(
  { store, audit }: BusinessDeps,
  { caller }: BusinessRequest<'operatorGetAuditHead'>,
): Promise<BusinessReply<'operatorGetAuditHead'>> {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const head = await audit.sign();
  if (!head) throw new DomainError('not_found', 'The audit trail has no entry yet.');
  return head;
}

/** Every signed head that is kept, oldest first, and the key of this installation. */
export async function operatorListAuditHeads(
  { store, audit }: BusinessDeps,
  { caller }: BusinessRequest<'operatorListAuditHeads'>,
): Promise<BusinessReply<'operatorListAuditHeads'>> {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const checkpoint = await findCheckpoint(store.read);
  const heads = await listHeads(store.read, { after: 0, limit: 1000 });
  return { key: audit.publicKey, heads, ...(checkpoint && { checkpoint }) };
}

/** A person by email, or an ID as it is: the trail outlives what it tells of. */
async function personOf(db: Reader, person: string): Promise<string> {
  if (!person.includes('@')) return person;
  const user = await findPersonByEmail(db, person);
  if (!user) throw new DomainError('not_found', `There is no account for ${person}.`);
  return user.id;
}

/** A cluster by name, or an ID as it is. */
async function clusterOf(db: Reader, cluster: string): Promise<string> {
  if (isUuid(cluster)) return cluster.toLowerCase();
  const found = await findClusterByName(db, cluster);
  if (!found) throw new DomainError('not_found', `There is no cluster ${cluster}.`);
  return found.id;
}
