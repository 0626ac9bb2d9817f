/** Access requests of members. They go with their person's membership, and their texts with retention and erasure. */
import { type AccessRequest, requestsLapseBefore } from '../../domain/access/request.ts';
import { newId } from '../../domain/id.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, insertRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';

/** Requests kept of one person in one organization; the oldest that are not open are deleted first. */
const mostKept = 20;
const mostOpen = 1_000;
const mostListed = 200;

type NewRequest = Pick<
  AccessRequest,
  'organizationId' | 'userId' | 'clusterId' | 'permissions' | 'hours' | 'reason'
>;

export async function createAccessRequest(tx: Tx, asked: NewRequest): Promise<string> {
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

/** Deletes the requests of a member who leaves, or holds every permission from now on. */
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

/** Deletes the open requests in an organization that ends. */
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

/** An organization's requests, a person's, or both. */
interface RequestFilter {
  organizationId?: string;
  userId?: string;
}

/** The requests that wait for a decision, oldest first. */
export async function listOpenRequests(db: Reader, of: RequestFilter, now: number): Promise<AccessRequest[]> {
  const rows = await requestsOf(db, of)
    .where('r.state', '=', 'open')
    .where('r.created_at', '>', toTime(requestsLapseBefore(now)))
    .orderBy('r.id')
    .limit(mostOpen)
    .execute();
  return rows.map(requestOf);
}

/** Requests in every state, newest first, as many as are worth showing. */
export async function listRequests(db: Reader, of: RequestFilter): Promise<AccessRequest[]> {
  const rows = await requestsOf(db, of).orderBy('r.id', 'desc').limit(mostListed).execute();
  return rows.map(requestOf);
}

function requestsOf(db: Reader, { organizationId, userId }: RequestFilter) {
  let query = requests(db);
  if (organizationId !== undefined) query = query.where('r.org_id', '=', organizationId);
  if (userId !== undefined) query = query.where('r.user_id', '=', userId);
  return query;
}

function requests(db: Reader) {
  return db
    .selectFrom('access_requests as r')
    .innerJoin('users as u', 'u.id', 'r.user_id')
    .leftJoin('users as d', 'd.id', 'r.decided_by_user_id')
    .select([
      'r.id',
      'r.org_id as organizationId',
      'r.user_id as userId',
      'u.primary_email as email',
      'r.cluster_id as clusterId',
      'r.permissions',
      'r.hours',
      'r.reason',
      'r.state',
      'r.created_at as createdAt',
      'r.decided_at as decidedAt',
      'd.primary_email as decidedBy',
      'r.decision_reason as decisionReason',
      'r.expires_at as expiresAt',
    ]);
}

type RequestRow = Awaited<ReturnType<ReturnType<typeof requests>['execute']>>[number];

function requestOf(row: RequestRow): AccessRequest {
  return { ...row, permissions: JSON.parse(row.permissions) as string[] };
}
