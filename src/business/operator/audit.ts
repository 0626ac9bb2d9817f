/** The audit trail, for those who may read it. */

import { listAuditEntries } from '../../store/audit.ts';
import { fromTime, toTime } from '../../store/time.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../index.ts';
import { requireStaff } from './staff.ts';

/** A page of the trail, oldest first. */
export async function operatorListAuditEntries(
  { store }: BusinessDeps,
  { caller, query }: BusinessRequest<'operatorListAuditEntries'>,
): Promise<BusinessReply<'operatorListAuditEntries'>> {
  await requireStaff(store.read, caller.userId, 'staff.audit');
  const { person, cluster, from, to, limit = 100, after = 0 } = query;
  const filter = {
    userId: person,
    clusterId: cluster?.toLowerCase(),
    from: from === undefined ? undefined : toTime(fromTime(from)),
    to: to === undefined ? undefined : toTime(fromTime(to)),
  };
  const entries = await listAuditEntries(store.read, filter, { after, limit });
  return {
    entries: entries.map(({ command_id, organization_id, cluster_id, subject_user_id, ...entry }) => ({
      ...entry,
      ...(command_id === null ? {} : { command_id }),
      ...(organization_id === null ? {} : { organization_id }),
      ...(cluster_id === null ? {} : { cluster_id }),
      ...(subject_user_id === null ? {} : { subject_user_id }),
    })),
  };
}
