/**
 * Business writes. Each is one command: permission, idempotency, the change, its audit entry and its stored result
 * in one transaction (contract, "Limits" and "Errors"). Two identical requests at the same instant make one change,
 * because writes are serial and the second finds the first's result.
 */
import { createHash } from 'node:crypto';
import { DomainError } from '../domain/error.ts';
import { newId } from '../domain/id.ts';
import type { Caller, CommandHeaders, CommandReply } from '../domain/operation.ts';
import { type About, entryOf, recordRefusal } from './attempts.ts';
import { appendAuditEntry } from './audit.ts';
import type { Store, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import type { CommandTable } from './schema.ts';
import { toTime } from './time.ts';

/** A write as it was asked for. */
export interface Command {
  operation: string;
  headers: CommandHeaders;
  caller: Caller;
  /** Its meaning: path parameters and body, in a settled order. */
  request: readonly unknown[];
  /** What it is aimed at, as far as the request tells. */
  about: About;
  now: number;
}

export interface CommandBody<T> {
  /** Throws if the caller may not do this; called again on every replay. */
  authorize?(tx: Tx): Promise<void>;
  /** Makes the change; `about` is what only now is known of what it was made on. */
  apply(tx: Tx, commandId: string): Promise<{ result: T; about?: Partial<About> }>;
}

/**
 * Runs a command once, or answers with what it did the first time. A refused command changes nothing, and leaves its
 * entry in the audit trail. Throws `idempotency_mismatch` when the caller used the key for something else.
 */
export async function runCommand<T>(
  store: Store,
  command: Command,
  body: CommandBody<T>,
): Promise<CommandReply<T>> {
  try {
    return await run(store, command, body);
  } catch (error) {
    await recordRefusal(store, command, error);
    throw error;
  }
}

async function run<T>(store: Store, command: Command, body: CommandBody<T>): Promise<CommandReply<T>> {
  const requestHash = createHash('sha256').update(JSON.stringify(command.request)).digest('hex');
  return store.write(async (opened) => {
    // One time for all of a command: the one at which it was asked for.
    const tx = { ...opened, now: command.now };
    await body.authorize?.(tx);
    const { userId } = command.caller;
    const { idempotencyKey } = command.headers;
    const [earlier] = await commandOf(tx.db, userId, idempotencyKey);
    if (earlier) {
      if (earlier.operation !== command.operation || earlier.request_hash !== requestHash) {
        throw new DomainError(
          'idempotency_mismatch',
          'This Idempotency-Key was used before for a different request. Use a new key for a new request.',
        );
      }
      return { commandId: earlier.id, replayed: true, result: JSON.parse(earlier.result) as T };
    }
    const commandId = newId('command', tx.now);
    const { result, about } = await body.apply(tx, commandId);
    await insertCommand(tx.db, {
      id: commandId,
      actor_user_id: userId,
      idempotency_key: idempotencyKey,
      operation: command.operation,
      request_hash: requestHash,
      result: JSON.stringify(result),
      created_at: toTime(tx.now),
    });
    await appendAuditEntry(tx, {
      ...entryOf(command, 'done'),
      ...about,
      command_id: commandId,
    });
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
