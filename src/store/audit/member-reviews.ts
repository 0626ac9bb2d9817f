/** Reviews of members' access, carried out: who is asked about, what gets an end, and what owners confirm. Each with its entries in the audit trail. */
import { monthMs, type ReviewState, reviewMs, reviewStep } from '../../domain/access/member-review.ts';
import { grantedText } from '../../domain/access/permission-end.ts';
import type { AuditEntry } from '../../domain/audit/audit.ts';
import type { Held } from '../../domain/organizations/group-rules.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { findRow, updateRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import { listGrantedByHand, permitByHand } from '../organizations/by-hand.ts';
import type { MemberId } from '../organizations/membership-changes.ts';
import { systemUserId } from '../people/people.ts';
import { appendAuditEntry } from './audit.ts';

/** As many members as one transaction takes on. */
const batch = 100;

/**
 * Takes the next step of each member for whom there is one. Each holds by itself and is never taken twice, so that it can stop
 * anywhere. `months`: undefined, there are no reviews; then what was asked is dropped, and ends that were given stay.
 */
export async function reviewMembers(
  store: Store,
  months: number | undefined,
  { now, stopping }: { now: number; stopping: AbortSignal },
): Promise<{ asked: number; ended: number }> {
  const done = { asked: 0, ended: 0 };
  // Of those who joined later, nothing can be due.
  const joinedBy = months === undefined ? '' : toTime(now - months * monthMs);
  const all = await reviewed(store.read)
    .where((eb) => eb.or([eb('m.review_asked_at', 'is not', null), eb('m.created_at', '<=', joinedBy)]))
    .execute();
  const due = all.map(reviewedOf).filter(({ state }) => reviewStep(state, months, now));
  for (const [organizationId, members] of Map.groupBy(due, (one) => one.organizationId)) {
    for (let from = 0; from < members.length && !stopping.aborted; from += batch) {
      const userIds = members.slice(from, from + batch).map(({ userId }) => userId);
      const steps = await store.write((tx) => takeSteps(tx, months, organizationId, userIds));
      for (const step of steps) {
        if (step === 'ask') done.asked += 1;
        if (step === 'end') done.ended += 1;
      }
    }
  }
  return done;
}

/** Ordinary members of active organizations. */
function reviewed(db: Reader) {
  return db
    .selectFrom('memberships as m')
    .innerJoin('organizations as o', 'o.id', 'm.org_id')
    .leftJoin('rule_memberships as r', (join) =>
      join.onRef('r.org_id', '=', 'm.org_id').onRef('r.user_id', '=', 'm.user_id'),
    )
    .select(['m.org_id', 'm.user_id', 'm.created_at', 'm.confirmed_at', 'm.review_asked_at'])
    .select(['m.review_ends_at', 'r.role as by_rules', 'r.by_hand'])
    .select((eb) =>
      eb
        .exists(
          eb
            .selectFrom('member_permissions as p')
            .select('p.permission')
            .whereRef('p.org_id', '=', 'm.org_id')
            .whereRef('p.user_id', '=', 'm.user_id')
            .where('p.expires_at', 'is', null),
        )
        .as('holds'),
    )
    .where('o.lifecycle_state', '=', 'active')
    .where('m.lifecycle_state', '=', 'active')
    .where('m.role', '=', 'member');
}

type ReviewedRow = Awaited<ReturnType<ReturnType<typeof reviewed>['execute']>>[number];

function reviewedOf(row: ReviewedRow): MemberId & { state: ReviewState } {
  const timeOf = (at: string | null) => (at === null ? undefined : fromTime(at));
  return {
    organizationId: row.org_id,
    userId: row.user_id,
    state: {
      since: fromTime(row.confirmed_at ?? row.created_at),
      askedAt: timeOf(row.review_asked_at),
      endsAt: timeOf(row.review_ends_at),
      holdsForGood: Boolean(row.by_rules === null ? row.holds : holdsByHand(row.by_hand)),
    },
  };
}

function holdsByHand(text: string | null): boolean {
  const held = text === null ? undefined : (JSON.parse(text) as Held);
  return held?.permissions.some(({ expiresAt }) => expiresAt === null) ?? false;
}

async function takeSteps(
  tx: Tx,
  months: number | undefined,
  organizationId: string,
  userIds: readonly string[],
) {
  const rows = await reviewed(tx.db)
    .where('m.org_id', '=', organizationId)
    .where('m.user_id', 'in', userIds)
    .execute();
  const steps: ReturnType<typeof reviewStep>[] = [];
  for (const { state, ...member } of rows.map(reviewedOf)) {
    const step = reviewStep(state, months, tx.now);
    const askedAt = step === 'ask' ? toTime(tx.now) : null;
    if (step === 'end') await giveEnd(tx, member);
    else if (step) await mark(tx, member, { review_asked_at: askedAt, review_ends_at: null });
    steps.push(step);
  }
  tx.changed({ kind: 'organization', organizationId });
  return steps;
}

async function mark(
  tx: Tx,
  { organizationId, userId }: MemberId,
  values: { confirmed_at?: string; review_asked_at?: string | null; review_ends_at: string | null },
): Promise<void> {
  await updateRows(tx.db, 'memberships', { org_id: organizationId, user_id: userId }, values);
}

/** Only what has no end gets this one, and only what was given by hand. */
async function giveEnd(tx: Tx, member: MemberId): Promise<void> {
  const { organizationId, userId } = member;
  const end = toTime(tx.now + reviewMs);
  const held = await listGrantedByHand(tx.db, member, tx.now);
  const permissions = held.map(({ key, expiresAt }) => ({ key, expiresAt: expiresAt ?? end }));
  await permitByHand(tx, { ...member, permissions }, { isFile: true });
  await mark(tx, member, { review_ends_at: end });
  await appendAuditEntry(tx, {
    actorUserId: systemUserId,
    operation: 'endUnconfirmedAccess',
    target: `${organizationId}/${userId}`,
    organizationId,
    subjectUserId: userId,
    reason: 'not confirmed by an owner',
    result: 'done',
    details: grantedText(permissions.filter(({ expiresAt }) => expiresAt === end)),
  });
}

/**
 * Confirms what a member holds: an end that a missed review gave, and that is to come, is taken back. What has ended stays ended.
 * Returns whether there is such a member; owners and admins are not reviewed.
 */
export async function confirmMember(
  tx: Tx,
  member: MemberId,
  by: Pick<AuditEntry, 'at' | 'actorUserId' | 'reason' | 'sourceAddress' | 'commandId'>,
): Promise<boolean> {
  const { organizationId, userId } = member;
  const who = { org_id: organizationId, user_id: userId };
  const row = await findRow(tx.db, 'memberships', { ...who, lifecycle_state: 'active', role: 'member' });
  if (!row) return false;
  const end = row.review_ends_at;
  if (end !== null && fromTime(end) > tx.now) {
    const held = await listGrantedByHand(tx.db, member, tx.now);
    const permissions = held.map((one) => (one.expiresAt === end ? { ...one, expiresAt: null } : one));
    await permitByHand(tx, { ...member, permissions }, { isFile: true });
  }
  await mark(tx, member, {
    confirmed_at: toTime(tx.now),
    review_asked_at: null,
    review_ends_at: null,
  });
  await appendAuditEntry(tx, {
    ...by,
    operation: 'confirmAccess.member',
    target: `${organizationId}/${userId}`,
    organizationId,
    subjectUserId: userId,
    result: 'done',
  });
  return true;
}
