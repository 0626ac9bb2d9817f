/** Who is signed in, and the browsers that they are signed in with. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import { sendJson } from '../../lib/send-json.ts';
import type { Store } from '../../store/engine/index.ts';
import {
  deleteConsoleSession,
  deleteOtherConsoleSessions,
  listConsoleSessions,
} from '../../store/people/console-sessions.ts';
import { requireOwnPage } from './headers.ts';
import { idleMs, isOver, longestMs, type Sessions } from './sessions.ts';

interface Deps {
  store: Store;
  sessions: Sessions;
  now(): number;
}

/** Answers `GET /session`, `GET /sessions`, `POST /sessions/end-others` and `POST /sessions/ID/end`. */
export async function answerSession(
  deps: Deps,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  requireOwnPage(request);
  const { store, sessions, now } = deps;
  const session = await sessions.of(request);
  const { id, userId } = session;
  const asked = `${request.method} ${path}`;
  if (asked === 'GET /session') {
    return sendJson(response, 200, {
      userId,
      signedInAt: time(session.createdAt),
      endsAt: time(Math.min(session.createdAt + longestMs, session.seenAt + idleMs)),
    });
  }
  if (asked === 'GET /sessions') {
    const open = (await listConsoleSessions(store.read, userId)).filter((one) => !isOver(one, now()));
    const shown = open.map((one) => ({
      id: one.id,
      current: one.id === id,
      address: one.address,
      program: one.program,
      signedInAt: time(one.createdAt),
      usedAt: time(one.seenAt),
    }));
    return sendJson(response, 200, { sessions: shown });
  }
  if (asked === 'POST /sessions/end-others') {
    const ended = await store.write((tx) => deleteOtherConsoleSessions(tx, userId, id));
    return sendJson(response, 200, { ended });
  }
  const [, other] = /^POST \/sessions\/([\w-]{43})\/end$/.exec(asked) ?? [];
  if (other === undefined) throw new DomainError('not_found', 'There is no such address here.');
  if (!(await store.write((tx) => deleteConsoleSession(tx, other, userId)))) {
    throw new DomainError('not_found', 'You have no such session.');
  }
  sendJson(response, 200, { ended: 1 });
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
