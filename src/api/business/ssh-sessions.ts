/** A person's own SSH sessions, and the logins that they were refused. */
import type { PastSession, SshSession } from '../../domain/access/ssh-session.ts';
import { DomainError } from '../../domain/error.ts';
import { listRefusedLogins } from '../../store/audit/audit.ts';
import { runCommand } from '../../store/audit/commands.ts';
import { requestClosing } from '../../store/audit/open-sessions.ts';
import { listPastSessions } from '../../store/audit/past-sessions.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import type { Operation } from './operation.ts';

/** Those that are open, oldest first. */
export const listMySessions: Operation<'listMySessions'> = async ({ gateway }, { caller }) => {
  const own = (await gateway.sessions()).filter(({ userId }) => userId === caller.userId);
  return { sessions: own.sort((a, b) => (a.openedAt < b.openedAt ? -1 : 1)).map(sessionBody) };
};

/** Closes one of the caller's own; anybody else's does not exist for them. */
export const closeMySession: Operation<'closeMySession'> = async (deps, request) => {
  const { caller, path } = request;
  const id = path.sessionID;
  const text = 'You have closed this session.';
  const session = (await deps.gateway.sessions()).find(
    (one) => one.id === id && one.userId === caller.userId,
  );
  const reply = await runCommand(deps.store, request, {
    operation: 'closeMySession',
    meaning: [id],
    about: { target: id, ...(session && { clusterId: session.clusterId, subjectUserId: caller.userId }) },
    async apply(tx) {
      if (!session) throw new DomainError('not_found', 'You have no such session any more.');
      await requestClosing(tx, { id, text });
      return { result: sessionBody(session), about: { details: session.loginName } };
    },
  });
  if (session) deps.gateway.close(id, text);
  return reply;
};

/** The last ones, newest first. */
export const listMyRefusals: Operation<'listMyRefusals'> = async ({ store }, { caller }) => {
  const refused = await listRefusedLogins(store.read, caller.userId, 20);
  return {
    refusals: refused.map(({ at, clusterId, keyId, sourceAddress, message }) => ({
      at,
      cluster_id: clusterId,
      key_id: keyId,
      source_address: sourceAddress,
      message,
    })),
  };
};

/** Those that are over, the last that ended first. */
export const listMyPastSessions: Operation<'listMyPastSessions'> = async ({ store }, { caller, query }) => {
  const { after: before, limit = 100, ...times } = query;
  const filter = { userId: caller.userId, ...utcTimes(times) };
  const sessions = await listPastSessions(store.read, filter, { before, limit });
  return { sessions: sessions.map(pastSessionBody) };
};

/** The times of a request as the tables hold them. */
export function utcTimes({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  return { from: from && toTime(fromTime(from)), to: to && toTime(fromTime(to)) };
}

/** A session that is over, as the API shows it. */
export function pastSessionBody(session: PastSession) {
  const { known } = session;
  return {
    seq: session.seq,
    id: session.id,
    cluster_id: session.clusterId,
    user_id: session.userId,
    username: session.username,
    key_id: session.keyId,
    fingerprint: session.fingerprint,
    remote_address: session.remoteAddress,
    login_node: session.loginNode,
    opened_at: session.openedAt,
    closed_at: session.closedAt,
    end_reason: session.reason,
    ...(known && {
      bytes_up: known.bytesUp,
      bytes_down: known.bytesDown,
      channels: known.shells + known.files + known.commandCount + known.forwardCount,
      shells: known.shells,
      file_transfers: known.files,
      command_count: known.commandCount,
      commands: [...known.commands],
      forward_count: known.forwardCount,
      forwards: [...known.forwards],
    }),
  };
}

/** A session as the API shows it. */
export function sessionBody(session: SshSession) {
  return {
    id: session.id,
    login_name: session.loginName,
    cluster_id: session.clusterId,
    user_id: session.userId,
    username: session.username,
    key_id: session.keyId,
    fingerprint: session.fingerprint,
    remote_address: session.remoteAddress,
    login_node: session.loginNode,
    opened_at: session.openedAt,
    channels: session.channels,
    bytes_up: session.bytesUp,
    bytes_down: session.bytesDown,
  };
}
