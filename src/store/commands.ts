/**
 * Business writes. Each is one command: permission, idempotency, the change, its audit entry and its stored result
 * in one transaction (contract, "Limits" and "Errors"). Two identical requests at the same instant make one change,
 * because writes are serial and the second finds the first's result.
 */
import { createHash } from 'node:crypto';
import { DomainError } from '../domain/error.ts';
import { newId } from '../domain/id.ts';
import type { Caller, CommandHeaders, CommandReply } from '../domain/operation.ts';
import type { Store, Tx } from './index.ts';
import type { AuditEntryTable } from './schema.ts';
import { toTime } from './time.ts';

/** A write as it was asked for. `request` is its meaning: path parameters and body, in a settled order. */
export interface Command {
  operation: string;
  headers: CommandHeaders;
  caller: Caller;
  request: readonly string[];
  now: number;
}

export interface CommandBody<T> {
  /** Throws if the caller may not do this; called again on every replay. */
  authorize?(tx: Tx): Promise<void>;
  /** Makes the change. `target` is what the audit entry says it was made on. */
  apply(tx: Tx, commandId: string): Promise<{ target: string; result: T }>;
}

/**
 * Runs a command once, or answers with what it did the first time. A refused command stores nothing. Throws
 * `idempotency_mismatch` when the caller used the key for something else.
 */
export async function runCommand<T>(
  store: Store,
  command: Command,
  body: CommandBody<T>,
): Promise<CommandReply<T>> {
  const requestHash = createHash('sha256').update(JSON.stringify(command.request)).digest('hex');
  return store.write(async (tx) => {
    await body.authorize?.(tx);
    const earlier = await tx.db
      .selectFrom('commands')
      .select(['operation', 'request_hash', 'result'])
      .where('actor_user_id', '=', command.caller.userId)
      .where('idempotency_key', '=', command.headers.idempotencyKey)
      .executeTakeFirst();
    if (earlier) {
      if (earlier.operation !== command.operation || earlier.request_hash !== requestHash) {
        throw new DomainError(
          'idempotency_mismatch',
          'This Idempotency-Key was used before for a different request. Use a new key for a new request.',
        );
      }
      return { replayed: true, result: JSON.parse(earlier.result) as T };
    }
    const commandId = newId('command', command.now);
    const { target, result } = await body.apply(tx, commandId);
    const at = toTime(command.now);
    await tx.db
      .insertInto('commands')
      .values({
        id: commandId,
        actor_user_id: command.caller.userId,
        idempotency_key: command.headers.idempotencyKey,
        operation: command.operation,
        request_hash: requestHash,
        result: JSON.stringify(result),
        created_at: at,
      })
      .execute();
    await appendAuditEntry(tx, {
      at,
      actor_user_id: command.caller.userId,
      command_id: commandId,
      operation: command.operation,
      target,
      reason: command.headers.auditReason,
      source_address: command.caller.sourceAddress,
      result: 'done',
    });
    return { replayed: false, result };
  });
}

/** An entry as it is handed in; its place in the trail is given when it is written. */
export type AuditEntry = Omit<AuditEntryTable, 'seq'>;

/** Adds to the audit trail, in the transaction of what the entry tells of. */
export async function appendAuditEntry(tx: Tx, entry: AuditEntry): Promise<void> {
  const last = await tx.db
    .selectFrom('audit_entries')
    .select('seq')
    .orderBy('seq', 'desc')
    .executeTakeFirst();
  await tx.db
    .insertInto('audit_entries')
    .values({ seq: (last?.seq ?? 0) + 1, ...entry })
    .execute();
}
