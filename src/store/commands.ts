/**
 * Business writes. Each is one command: permission, idempotency, the change, its audit entry and its stored result
 * in one transaction (contract, "Limits" and "Errors"). Two identical requests at the same instant make one change,
 * because writes are serial and the second finds the first's result.
 */
import { createHash } from 'node:crypto';
import { DomainError } from '../domain/error.ts';
import { newId } from '../domain/id.ts';
import type { Caller, CommandReply, Request } from '../domain/operation.ts';
import { activeSpan, inSpan } from '../lib/trace.ts';
import { type About, type Attempt, entryOf, recordRefusal } from './attempts.ts';
import { appendAuditEntry } from './audit.ts';
import type { Store, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import type { CommandTable } from './schema.ts';
import { toTime } from './time.ts';

/** A Business write: what it is, who may do it, and the change. */
export interface Command<T> {
  operation: string;
  /** Path parameters and body, in a settled order: a replay has the same. */
  meaning: readonly unknown[];
  /** What it is aimed at, as far as the request tells. */
  about: About;
  /** Throws if the caller may not do this; called again on every replay. */
  authorize?(tx: Tx, caller: Caller): Promise<void>;
  /** Makes the change; `about` is what only now is known of what it was made on. */
  apply(tx: Tx, commandId: string): Promise<{ result: T; about?: LateAbout }>;
}

/** What is known of a change once it was made; a `reason` takes the place of the one that was given. */
export type LateAbout = Partial<About & { reason: string }>;

/** Who asks, with which headers, and when (milliseconds since 1970). */
export type CommandRequest = Pick<Request, 'caller' | 'command' | 'now'>;

/**
 * Runs a command once, or answers with what it did the first time. A refused command changes nothing, and leaves its
 * entry in the audit trail. Throws `idempotency_mismatch` when the caller used the key for something else.
 */
export async function runCommand<T>(
  store: Store,
  request: CommandRequest,
  command: Command<T>,
): Promise<CommandReply<T>> {
  const { caller, now } = request;
  const { operation, about } = command;
  const attempt = { operation, headers: request.command, caller, about, now };
  try {
    const about = { 'andromeda.operation': operation };
    return await inSpan('command', about, async () => {
      const reply = await run(store, attempt, request.command.idempotencyKey, command);
      noteCommand(reply.commandId);
      return reply;
    });
  } catch (error) {
    await recordRefusal(store, attempt, error);
    throw error;
  }
}

/** What follows from it, in other parts of its trace, names it as well. */
function noteCommand(commandId: string): void {
  const span = activeSpan();
  if (!span) return;
  span.set({ 'andromeda.command_id': commandId });
  span.shared.commandId = commandId;
}

async function run<T>(
  store: Store,
  attempt: Attempt,
  idempotencyKey: string,
  { operation, meaning, authorize, apply }: Command<T>,
): Promise<CommandReply<T>> {
  const { caller, now } = attempt;
  const requestHash = createHash('sha256').update(JSON.stringify(meaning)).digest('hex');
  return store.write(async (opened) => {
    // One time for all of a command: the one at which it was asked for.
    const tx = { ...opened, now };
    await authorize?.(tx, caller);
    const [earlier] = await commandOf(tx.db, caller.userId, idempotencyKey);
    if (earlier) {
      if (earlier.operation !== operation || earlier.request_hash !== requestHash) {
        throw new DomainError(
          'idempotency_mismatch',
          'This Idempotency-Key was used before for a different request. Use a new key for a new request.',
        );
      }
      return { commandId: earlier.id, replayed: true, result: JSON.parse(earlier.result) as T };
    }
    const commandId = newId('command', now);
    const { result, about } = await apply(tx, commandId);
    await insertCommand(tx.db, {
      id: commandId,
      actor_user_id: caller.userId,
      idempotency_key: idempotencyKey,
      operation,
      request_hash: requestHash,
      result: JSON.stringify(result),
      created_at: toTime(now),
    });
    await appendAuditEntry(tx, { ...entryOf(attempt, 'done'), ...about, commandId });
    return { commandId, replayed: false, result };
  });
}

const commandOf = prepared((db, userId: string, idempotencyKey: string) =>
  db
    .selectFrom('commands')
    .select(['id', 'operation', 'request_hash', 'result'])
    .where('actor_user_id', '=', userId)
    .where('idempotency_key', '=', idempotencyKey),
);

const insertCommand = prepared((db, command: CommandTable) => db.insertInto('commands').values(command));
