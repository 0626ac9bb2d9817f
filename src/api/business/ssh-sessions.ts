/** A person's own SSH sessions and refused logins. */
import type { PastSession, SshSession } from '../../domain/access/ssh-session.ts';
import { notFound } from '../../domain/error.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { listRefusedLogins } from '../../store/audit/audit.ts';
import { type Command, runCommand } from '../../store/audit/commands.ts';
import { requestClosing, withConfirmedJob } from '../../store/audit/open-sessions.ts';
import { listPastSessions } from '../../store/audit/past-sessions.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import type { BusinessDeps, BusinessRequest, Operation } from './operation.ts';

export const listMySessions: Operation<'listMySessions'> = (deps, { caller }) =>
  openSessions(deps, (session) => session.userId === caller.userId);

/** Closes a session of the caller's; other people's are reported as not found. */
export const closeMySession: Operation<'closeMySession'> = (deps, request) =>
  closing(deps, request, {
    operation: 'closeMySession',
    text: 'You have closed this session.',
    isTheirs: ({ userId }) => userId === request.caller.userId,
    absent: 'You have no such session any more.',
  });

export async function closing(
  deps: BusinessDeps,
  request: Pick<BusinessRequest<'closeMySession'>, 'caller' | 'path' | 'command' | 'now'>,
  {
    text,
    isTheirs,
    absent,
    ...command
  }: Pick<Command<unknown>, 'operation' | 'authorize'> & {
    text: string;
    /** Whether the caller may close the session; any other is reported as not found. */
    isTheirs(session: SshSession): boolean;
    absent: string;
  },
) {
  const { sessionID: id } = request.path;
  const session = (await deps.gateway.sessions()).find((one) => one.id === id && isTheirs(one));
  const reply = await runCommand(deps.store, request, {
    ...command,
    meaning: [id],
    about: { target: id, ...(session && { clusterId: session.clusterId, subjectUserId: session.userId }) },
    async apply(tx) {
      if (!session) throw notFound(absent);
      const takesAway = await requestClosing(tx, { id, text });
      const result = sessionBody(await withConfirmedJob(tx.db, session));
      return { result, about: { details: session.loginName }, takesAway };
    },
  });
  // Done only after the audit entry is written; closing twice does no harm.
  deps.gateway.close(id, text);
  return reply;
}

export const listMyRefusals: Operation<'listMyRefusals'> = async ({ store }, { caller }) => {
  const refused = await listRefusedLogins(store.read, caller.userId, 20);
  return {
    refusals: refused.map((one) => snakeCased(one, ['at', 'clusterId', 'keyId', 'sourceAddress', 'message'])),
  };
};

export const listMyPastSessions: Operation<'listMyPastSessions'> = async ({ store }, { caller, query }) => {
  const { after: before, limit = 100, ...times } = query;
  const filter = { userId: caller.userId, ...utcTimes(times) };
  const sessions = await listPastSessions(store.read, filter, { before, limit });
  return { sessions: sessions.map(pastSessionBody) };
};

export function utcTimes({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  return { from: from && toTime(fromTime(from)), to: to && toTime(fromTime(to)) };
}

export function pastSessionBody(session: PastSession) {
  const { known } = session;
  return {
    seq: session.seq,
    ...sessionFacts(session),
    closed_at: session.closedAt,
    end_reason: session.reason,
    ...(known && {
      ...snakeCased(known, ['bytesUp', 'bytesDown', 'shells', 'commandCount', 'forwardCount']),
      channels: known.shells + known.files + known.commandCount + known.forwardCount,
      file_transfers: known.files,
      commands: [...known.commands],
      forwards: [...known.forwards],
    }),
  };
}

export async function openSessions(
  { store, gateway }: Pick<BusinessDeps, 'store' | 'gateway'>,
  isAsked: (session: SshSession) => boolean,
) {
  const asked = (await gateway.sessions()).filter(isAsked);
  const known = await Promise.all(asked.map((session) => withConfirmedJob(store.read, session)));
  return { sessions: known.sort((a, b) => (a.openedAt < b.openedAt ? -1 : 1)).map(sessionBody) };
}

function sessionBody(session: SshSession) {
  return {
    ...sessionFacts(session),
    ...snakeCased(session, ['loginName', 'channels', 'bytesUp', 'bytesDown']),
  };
}

function sessionFacts(session: SshSession | PastSession) {
  return {
    ...snakeCased(session, ['id', 'clusterId', 'userId', 'username', 'keyId', 'fingerprint']),
    ...snakeCased(session, ['remoteAddress', 'loginNode', 'openedAt']),
    ...present(snakeCased(session, ['job', 'jobNode'])),
  };
}
