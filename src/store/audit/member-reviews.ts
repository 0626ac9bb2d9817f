/** Carries out reviews of members' access (`domain/access/member-review.ts`): permissions due for one get an end and an audit entry. */
import { grantedText } from '../../domain/access/permission.ts';
import { monthMs, reviewMs } from '../../domain/access/review.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { findShares, type MemberId } from '../organizations/holdings.ts';
import { updateMemberPermissions } from '../organizations/membership-changes.ts';
import { systemUserId } from '../people/people.ts';
import { appendAuditEntry } from './audit.ts';

/** Members per transaction. */
const batch = 100;

/**
 * Gives an end to permissions that are due for review; returns the number of members. Each end holds by itself and is
 * never given twice, so that this can stop anywhere.
 */
export async function reviewMembers(
  store: Store,
  months: number,
  { now, stopping }: { now: number; stopping: AbortSignal },
): Promise<number> {
  const due = await listDue(store.read, months, now);
  let ended = 0;
  for (const [organizationId, members] of Map.groupBy(due, (one) => one.organizationId)) {
    for (let from = 0; from < members.length && !stopping.aborted; from += batch) {
      const userIds = members.slice(from, from + batch).map(({ userId }) => userId);
      ended += await store.write(async (tx) => {
        const still = await listDue(tx.db, months, tx.now, { organizationId, userIds });
        for (const member of still) await giveEnd(tx, member);
        tx.changed({ kind: 'organization', organizationId });
        return still.length;
      });
    }
  }
  return ended;
}

/** Ordinary members of active organizations with a permission by hand that has no end, unchanged for so many months. */
async function listDue(
  db: Reader,
  months: number,
  now: number,
  among?: { organizationId: string; userIds: readonly string[] },
): Promise<MemberId[]> {
  let query = db
    .selectFrom('memberships as m')
    .innerJoin('organizations as o', 'o.id', 'm.org_id')
    .select(['m.org_id as organizationId', 'm.user_id as userId'])
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('holdings as p')
          .select('p.what')
          .whereRef('p.org_id', '=', 'm.org_id')
          .whereRef('p.user_id', '=', 'm.user_id')
          .where('p.kind', '=', 'permission')
          .where('p.source', '=', 'hand')
          .where('p.expires_at', 'is', null)
          .where('p.ended_at', 'is', null),
      ),
    )
    .where('o.lifecycle_state', '=', 'active')
    .where('m.lifecycle_state', '=', 'active')
    .where('m.role', '=', 'member')
    .where('m.review_from', '<=', toTime(now - months * monthMs));
  if (among)
    query = query.where('m.org_id', '=', among.organizationId).where('m.user_id', 'in', among.userIds);
  return query.execute();
}

/** Gives the end only to permissions that were given by hand and have none. */
async function giveEnd(tx: Tx, member: MemberId): Promise<void> {
  const { organizationId, userId } = member;
  const end = toTime(tx.now + reviewMs);
  const held = (await findShares(tx.db, member, tx.now)).byHand?.permissions ?? [];
  const permissions = held.map(({ key, expiresAt }) => ({ key, expiresAt: expiresAt ?? end }));
  await updateMemberPermissions(tx, { organizationId, userId, permissions }, { isFile: true });
  await updateRows(tx.db, 'memberships', { org_id: organizationId, user_id: userId }, { review_from: end });
  await appendAuditEntry(tx, {
    actorUserId: systemUserId,
    operation: 'endReviewedAccess',
    target: `${organizationId}/${userId}`,
    organizationId,
    subjectUserId: userId,
    reason: 'to be kept by an owner',
    result: 'done',
    details: grantedText(permissions.filter(({ expiresAt }) => expiresAt === end)),
  });
}
