/** What members ask for. Requests go with their person's membership, and texts with retention and erasure. */
import { type AccessRequest, requestsLapseBefore } from '../../domain/access/request.ts';
import { newId } from '../../domain/id.ts';
import { eraseFromText, type PersonNames } from '../../domain/people/erasure.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { deleteRows, insertRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';

/** Of one person in one organization; the oldest that are not open are deleted first. */
const mostKept = 20;
const mostOpen = 1_000;
const mostListed = 200;
const partSize = 50;

type Asked = Pick<
  AccessRequest,
  'organizationId' | 'userId' | 'clusterId' | 'permissions' | 'hours' | 'reason'
>;

export async function createAccessRequest(tx: Tx, asked: Asked): Promise<string> {
  const { organizationId, userId } = asked;
  const id = newId('access_request', tx.now);
  const old = await tx.db
    .selectFrom('access_requests')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', userId)
    .where((eb) =>
      eb.or([eb('state', '!=', 'open'), eb('created_at', '<=', toTime(requestsLapseBefore(tx.now)))]),
    )
    .orderBy('id', 'desc')
    .offset(mostKept - 1)
    .limit(mostKept)
    .execute();
  for (const one of old) await deleteRows(tx.db, 'access_requests', { id: one.id });
  await insertRow(tx.db, 'access_requests', {
    id,
    org_id: organizationId,
    user_id: userId,
    cluster_id: asked.clusterId,
    permissions: JSON.stringify(asked.permissions),
    hours: asked.hours,
    reason: asked.reason,
    state: 'open',
    created_at: toTime(tx.now),
    decided_at: null,
    decided_by_user_id: null,
    decision_reason: null,
    expires_at: null,
  });
  changed(tx, asked);
  return id;
}

/** Decides a request, or takes it back. */
export async function updateAccessRequest(
  tx: Tx,
  request: AccessRequest,
  decision: {
    state: 'approved' | 'declined' | 'withdrawn';
    by: string;
    reason: string;
    expiresAt?: string | null;
  },
): Promise<void> {
  const isOwn = decision.state === 'withdrawn';
  await updateRows(
    tx.db,
    'access_requests',
    { id: request.id },
    {
      state: decision.state,
      decided_at: toTime(tx.now),
      decided_by_user_id: isOwn ? null : decision.by,
      decision_reason: isOwn ? null : decision.reason,
      expires_at: decision.expiresAt ?? null,
    },
  );
  changed(tx, request);
}

/** A member leaves, or holds everything from here on. */
export async function deleteAccessRequests(
  tx: Tx,
  member: { organizationId: string; userId: string },
): Promise<void> {
  const { numDeletedRows } = await tx.db
    .deleteFrom('access_requests')
    .where('org_id', '=', member.organizationId)
    .where('user_id', '=', member.userId)
    .executeTakeFirstOrThrow();
  if (numDeletedRows > 0n) changed(tx, member);
}

/** An organization ends, and with it what waits for a decision there. */
export async function deleteOpenRequests(tx: Tx, organizationId: string): Promise<void> {
  const rows = await tx.db
    .deleteFrom('access_requests')
    .where('org_id', '=', organizationId)
    .where('state', '=', 'open')
    .returning('user_id')
    .execute();
  for (const userId of new Set(rows.map((row) => row.user_id))) changed(tx, { organizationId, userId });
}

function changed(tx: Tx, { organizationId, userId }: { organizationId: string; userId: string }): void {
  tx.changed({ kind: 'requests', userId, organizationId });
}

export async function findAccessRequest(db: Reader, id: string): Promise<AccessRequest | undefined> {
  const row = await requests(db).where('r.id', '=', id).executeTakeFirst();
  return row && requestOf(row);
}

/** A person's in an organization that wait for a decision, oldest first. */
export async function listOpenRequestsOf(
  db: Reader,
  { organizationId, userId }: { organizationId: string; userId: string },
  now: number,
): Promise<AccessRequest[]> {
  const rows = await openRequests(db, now)
    .where('r.org_id', '=', organizationId)
    .where('r.user_id', '=', userId)
    .execute();
  return rows.map(requestOf);
}

/** An organization's that wait for a decision, oldest first. */
export async function listOpenRequests(
  db: Reader,
  organizationId: string,
  now: number,
): Promise<AccessRequest[]> {
  const rows = await openRequests(db, now).where('r.org_id', '=', organizationId).limit(mostOpen).execute();
  return rows.map(requestOf);
}

/** An organization's of every kind, newest first, as many as are worth showing. */
export async function listRequests(db: Reader, organizationId: string): Promise<AccessRequest[]> {
  const rows = await requests(db)
    .where('r.org_id', '=', organizationId)
    .orderBy('r.id', 'desc')
    .limit(mostListed)
    .execute();
  return rows.map(requestOf);
}

/** A person's in every organization, newest first. */
export async function listRequestsOf(db: Reader, userId: string): Promise<AccessRequest[]> {
  const rows = await requests(db)
    .where('r.user_id', '=', userId)
    .orderBy('r.id', 'desc')
    .limit(mostListed)
    .execute();
  return rows.map(requestOf);
}

/**
 * Takes a person out of a part of what members asked for: what they wrote goes, and in others' texts their names. Returns the last
 * request looked at; undefined at the end.
 */
export async function eraseAccessRequests(
  store: Store,
  names: PersonNames,
  after: string,
): Promise<string | undefined> {
  const rows = await store.read
    .selectFrom('access_requests')
    .select(['id', 'user_id', 'reason', 'decided_by_user_id', 'decision_reason'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(partSize)
    .execute();
  await store.write(async ({ db }) => {
    for (const row of rows) {
      if (row.user_id === names.userId) {
        await deleteRows(db, 'access_requests', { id: row.id });
        continue;
      }
      const isTheirs = row.decided_by_user_id === names.userId;
      const reason = eraseFromText(row.reason, names);
      const decision =
        isTheirs || row.decision_reason === null ? '' : eraseFromText(row.decision_reason, names);
      if (reason === row.reason && decision === (row.decision_reason ?? '')) continue;
      await updateRows(
        db,
        'access_requests',
        { id: row.id },
        { reason, decision_reason: row.decision_reason === null ? null : decision },
      );
    }
  });
  return rows.at(-1)?.id;
}

function openRequests(db: Reader, now: number) {
  return requests(db)
    .where('r.state', '=', 'open')
    .where('r.created_at', '>', toTime(requestsLapseBefore(now)))
    .orderBy('r.id');
}

function requests(db: Reader) {
  return db
    .selectFrom('access_requests as r')
    .innerJoin('users as u', 'u.id', 'r.user_id')
    .leftJoin('users as d', 'd.id', 'r.decided_by_user_id')
    .selectAll('r')
    .select(['u.primary_email', 'd.primary_email as decider_email']);
}

type Row = Awaited<ReturnType<ReturnType<typeof requests>['execute']>>[number];

function requestOf(row: Row): AccessRequest {
  return {
    id: row.id,
    organizationId: row.org_id,
    userId: row.user_id,
    email: row.primary_email,
    clusterId: row.cluster_id,
    permissions: JSON.parse(row.permissions) as string[],
    hours: row.hours,
    reason: row.reason,
    state: row.state,
    createdAt: row.created_at,
    decidedAt: row.decided_at,
    decidedBy: row.decider_email,
    decisionReason: row.decision_reason,
    expiresAt: row.expires_at,
  };
}
