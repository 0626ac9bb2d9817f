/**
 * Business writes. Each is one command: permission, idempotency, the change, its audit entry and its stored result
 * in one transaction (contract, "Limits" and "Errors"). Two identical requests at the same instant make one change,
 * because writes are serial and the second finds the first's result.
 */
import { createHash } from 'node:crypto';
import { DomainError, type ErrorCode } from '../domain/error.ts';
import { newId } from '../domain/id.ts';
import type { Caller, CommandHeaders, CommandReply } from '../domain/operation.ts';
import { type AuditEntry, appendAuditEntry } from './audit.ts';
import type { Store, Tx } from './index.ts';
import { toTime } from './time.ts';

/** What a change is made on, as the audit trail says it. */
export type About = Pick<
  AuditEntry,
  'target' | 'organization_id' | 'cluster_id' | 'subject_user_id' | 'details'
>;

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

/** Refusals that say something of what a person tried; the others are malformed requests and faults of ours. */
const audited: ReadonlySet<ErrorCode> = new Set([
  'forbidden',
  'not_found',
  'invalid_state',
  'idempotency_mismatch',
]);
/** A trail that anyone signed in could fill by asking again and again would be no help to anyone. */
const mostRefusalsAMinute = 60;

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
  return store.write(async (tx) => {
    await body.authorize?.(tx);
    const earlier = await tx.db
      .selectFrom('commands')
      .select(['id', 'operation', 'request_hash', 'result'])
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
      return { commandId: earlier.id, replayed: true, result: JSON.parse(earlier.result) as T };
    }
    const commandId = newId('command', command.now);
    const { result, about } = await body.apply(tx, commandId);
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
    await appendAuditEntry(tx, { ...entryOf(command, 'done'), ...about, command_id: commandId });
    return { commandId, replayed: false, result };
  });
}

/** A write as far as the trail tells of it. */
type Attempt = Pick<Command, 'operation' | 'caller' | 'about' | 'now'> & {
  headers: Pick<CommandHeaders, 'auditReason'>;
};

function entryOf({ operation, headers, caller, about, now }: Attempt, result: string): AuditEntry {
  return {
    ...about,
    at: toTime(now),
    actor_user_id: caller.userId,
    operation,
    reason: headers.auditReason,
    source_address: caller.sourceAddress,
    result,
  };
}

const refusals = new WeakMap<Store, Map<string, { count: number; since: number }>>();

/** Writes down that an attempt was refused, where the refusal says something of what a person tried. Never throws. */
export async function recordRefusal(store: Store, command: Attempt, error: unknown): Promise<void> {
  if (!(error instanceof DomainError) || !audited.has(error.code)) return;
  const counts = refusals.get(store) ?? new Map<string, { count: number; since: number }>();
  refusals.set(store, counts);
  const { userId } = command.caller;
  let recent = counts.get(userId);
  if (!recent || command.now - recent.since >= 60_000) recent = { count: 0, since: command.now };
  recent.count += 1;
  if (counts.size > 10_000) counts.clear();
  counts.set(userId, recent);
  if (recent.count > mostRefusalsAMinute) return;
  const last = recent.count === mostRefusalsAMinute;
  const details = last
    ? `${error.message} (Further refusals of this minute are not recorded.)`
    : error.message;
  // The refusal stands whether or not it can be written down.
  await store
    .write((tx) => appendAuditEntry(tx, { ...entryOf(command, `refused: ${error.code}`), details }))
    .catch(() => {});
}
