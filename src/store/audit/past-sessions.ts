/**
 * Past SSH sessions: the closing audit entry of each, in columns. A row is deleted when retention replaces or deletes
 * that entry, and when its person is erased, whose names are then erased in other rows as well.
 */
import type { Selectable } from 'kysely';
import type { PastSession } from '../../domain/access/ssh-session.ts';
import type { SessionEntry } from '../../domain/audit/audit.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, insertRow } from '../engine/rows.ts';
import type { Schema } from '../generated/schema.ts';

/** Stores a session whose closing entry is `entry`, with the number `seq`. */
export async function addPastSession(
  tx: Tx,
  about: { seq: number; entry: SessionEntry; organizationId: string | undefined },
): Promise<void> {
  const { seq, entry, organizationId } = about;
  const { session, uses, at, reason } = entry;
  if (!session) return;
  await insertRow(tx.db, 'ssh_sessions', {
    seq,
    id: session.id,
    cluster_id: session.clusterId,
    organization_id: organizationId ?? null,
    user_id: session.userId,
    username: session.username,
    key_id: session.keyId,
    fingerprint: session.fingerprint,
    remote_address: session.remoteAddress,
    login_node: session.loginNode,
    job: session.job ?? null,
    job_node: session.jobNode ?? null,
    opened_at: session.openedAt,
    closed_at: at,
    end_reason: reason,
    bytes_up: uses ? session.bytesUp : null,
    bytes_down: uses ? session.bytesDown : null,
    shells: uses?.shells ?? null,
    file_transfers: uses?.files ?? null,
    command_count: uses?.commandCount ?? null,
    commands: JSON.stringify(uses?.commands ?? []),
    forward_count: uses?.forwardCount ?? null,
    forwards: JSON.stringify(uses?.forwards ?? []),
  });
}

export async function deletePastSession({ db }: Tx, seq: number): Promise<void> {
  await deleteRows(db, 'ssh_sessions', { seq });
}

export interface PastSessionFilter {
  userId?: string | undefined;
  clusterId?: string | undefined;
  /** The remote address, exactly. */
  address?: string | undefined;
  /** A fingerprint, or the ID of a key. */
  key?: string | undefined;
  /** RFC 3339 in UTC: sessions that were open at some time between these. */
  from?: string | undefined;
  to?: string | undefined;
}

/** A page of sessions, the latest end first, beginning below the number `before` where that is given. */
export async function listPastSessions(
  db: Reader,
  filter: PastSessionFilter,
  { before, limit }: { before?: number | undefined; limit: number },
): Promise<PastSession[]> {
  const { userId, clusterId, address, key, from, to } = filter;
  let query = db.selectFrom('ssh_sessions').selectAll();
  if (before !== undefined) query = query.where('seq', '<', before);
  if (userId !== undefined) query = query.where('user_id', '=', userId);
  if (clusterId !== undefined) query = query.where('cluster_id', '=', clusterId);
  if (address !== undefined) query = query.where('remote_address', '=', address);
  if (key !== undefined) query = query.where(key.startsWith('SHA256:') ? 'fingerprint' : 'key_id', '=', key);
  if (from !== undefined) query = query.where('closed_at', '>=', from);
  if (to !== undefined) query = query.where('opened_at', '<', to);
  return (await query.orderBy('seq', 'desc').limit(limit).execute()).map(sessionOf);
}

function sessionOf(row: Selectable<Schema['ssh_sessions']>): PastSession {
  const { bytes_up: bytesUp, bytes_down: bytesDown } = row;
  return {
    seq: row.seq,
    id: row.id,
    clusterId: row.cluster_id,
    userId: row.user_id,
    username: row.username,
    keyId: row.key_id,
    fingerprint: row.fingerprint,
    remoteAddress: row.remote_address,
    loginNode: row.login_node,
    ...(row.job !== null && { job: row.job }),
    ...(row.job_node !== null && { jobNode: row.job_node }),
    openedAt: row.opened_at,
    closedAt: row.closed_at,
    reason: row.end_reason,
    known:
      bytesUp === null || bytesDown === null
        ? undefined
        : {
            bytesUp,
            bytesDown,
            shells: row.shells ?? 0,
            files: row.file_transfers ?? 0,
            commandCount: row.command_count ?? 0,
            commands: JSON.parse(row.commands) as string[],
            forwardCount: row.forward_count ?? 0,
            forwards: JSON.parse(row.forwards) as string[],
          },
  };
}
