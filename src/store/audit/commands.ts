/**
 * Business writes. Each is one command: permission, idempotency, the change, its audit entry and its stored result
 * in one transaction (contract, "Limits" and "Errors"). Two identical requests at the same instant make one change,
 * because writes are serial and the second finds the first's result. Platform's replacements of a document need no key and are
 * audited alike.
 */
import { createHash } from 'node:crypto';
import { dayMs } from '../../domain/access/lapse.ts';
import { endText } from '../../domain/access/permission.ts';
import type { AuditEntry } from '../../domain/audit/audit.ts';
import { DomainError, type ErrorCode, TooManyRequests } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import type { Caller, CommandReply, Request, WriteHeaders } from '../../domain/operation.ts';
import { cutText } from '../../domain/text.ts';
import type { Store, Tx } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, insertRow } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { appendAuditEntry, readTrailEnd } from './audit.ts';

/** The object of a change, as the audit trail names it. */
export type About = Pick<AuditEntry, 'target' | 'organizationId' | 'clusterId' | 'subjectUserId' | 'details'>;

/** The fields of an attempt's audit entry, without its result. */
interface Attempt {
  operation: string;
  reason: string;
  caller: Caller;
  about: About;
  now: number;
}

function entryOf({ operation, reason, caller, about, now }: Attempt, result: string): AuditEntry {
  return {
    ...about,
    at: toTime(now),
    actorUserId: caller.userId,
    operation,
    reason,
    sourceAddress: caller.sourceAddress,
    result,
  };
}

/** Codes of refusals that are audited, as they show what a person tried; the others are faults of ours. */
const audited: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'forbidden',
  'not_found',
  'invalid_state',
  'idempotency_mismatch',
  'precondition_failed',
]);

/** Each server counts for itself, by design: the bound is against a flood, and a second server at most doubles it. */
const refusals = new WeakMap<Store, Map<string, RecentRefusals>>();
/** No signed-in person can fill the trail by asking again and again. */
const mostRefusals = 60;
const refusalWindowMs = 60_000;
const mostRefusalsADay = 1_000;
const mostKinds = 20;

/** A person's refusals within a minute: their number, and the kinds of those that have no entry. */
interface RecentRefusals {
  count: number;
  since: number;
  further: Map<string, number>;
  day: { entries: number; since: number };
}

/**
 * Records the refusal of an attempt: one entry each, up to a limit per person and minute, and one per person and day;
 * further refusals are summed up in one entry a minute. Never throws.
 */
async function recordRefusal(store: Store, attempt: Attempt, error: unknown): Promise<void> {
  if (!(error instanceof DomainError) || !audited.has(error.code)) return;
  const people = refusals.get(store) ?? new Map<string, RecentRefusals>();
  refusals.set(store, people);
  const { userId } = attempt.caller;
  const { now } = attempt;
  let recent = people.get(userId);
  if (!recent || now - recent.since >= refusalWindowMs) {
    const day = recent && now - recent.day.since < dayMs ? recent.day : { entries: 0, since: now };
    if (recent) await sumUp(store, attempt, recent);
    recent = { count: 0, since: now, further: new Map(), day };
    people.set(userId, recent);
  }
  recent.count += 1;
  const result = `refused: ${error.code}`;
  if (recent.count <= mostRefusals && recent.day.entries < mostRefusalsADay) {
    recent.day.entries += 1;
    await append(store, { ...entryOf(attempt, result), details: error.message });
    return;
  }
  const { further } = recent;
  if (further.size === 0) setTimeout(() => void sumUp(store, attempt, recent), refusalWindowMs).unref();
  const kind = `${attempt.operation} on ${cutText(attempt.about.target, 80)}`;
  const known = further.size < mostKinds || further.has(kind) ? kind : 'others';
  further.set(known, (further.get(known) ?? 0) + 1);
}

/** Adds one entry for all refusals that had none of their own; none where they were summed up before. */
async function sumUp(store: Store, attempt: Attempt, { further }: RecentRefusals): Promise<void> {
  if (further.size === 0) return;
  const details = [...further].map(([kind, count]) => `${count} × ${kind}`).join('; ');
  further.clear();
  await append(store, {
    at: toTime(attempt.now),
    actorUserId: attempt.caller.userId,
    operation: 'furtherRefusals',
    target: attempt.caller.userId,
    reason: '',
    sourceAddress: attempt.caller.sourceAddress,
    result: 'refused',
    details,
  });
}

/** A failure to write is ignored: the refusal stands without its entry. */
async function append(store: Store, entry: AuditEntry): Promise<void> {
  await store.write((tx) => appendAuditEntry(tx, entry)).catch(() => {});
}

/** A Business write: its operation, its permission check, and the change. */
export interface Command<T, Found = void> {
  operation: string;
  /** Path parameters and body, in a settled order: a replay has the same. */
  meaning: readonly unknown[];
  /** The object of the write, as far as the request names it. */
  about: About;
  /** Throws if the caller may not do this; called again on every replay. */
  authorize?(tx: Tx, caller: Caller): Promise<void>;
  /** Reads what `apply` needs, together with the queries before it, so that other writes wait for no extra round trip. */
  read?(tx: Tx): Promise<Found>;
  /** Makes the change; `about` has what is known of its object only now. */
  apply(tx: Tx, commandId: string, found: Found): Promise<Applied<T>>;
}

interface Applied<T> {
  result: T;
  about?: LateAbout;
  /** For `takingWrites`: whether the write took something away. If not, it wrote nothing. */
  takesAway?: boolean;
}

/** Details of a change that are known once it was made; a `reason` replaces the one in the request. */
export type LateAbout = Partial<About & { reason: string }>;

/** The caller, the headers of the command, and the time in milliseconds since 1970. */
export type CommandRequest = Pick<Request, 'caller' | 'command' | 'now'>;

/**
 * Runs a command once, or answers with what it did the first time. A refused command changes nothing, and leaves its
 * entry in the audit trail. Throws `idempotency_mismatch` when the caller used the key for something else.
 */
export async function runCommand<T, Found = void>(
  store: Store,
  request: CommandRequest,
  command: Command<T, Found>,
): Promise<CommandReply<T>> {
  const { caller, now } = request;
  const { operation, about } = command;
  const attempt = { operation, reason: request.command.auditReason, caller, about, now };
  return recorded(store, attempt, () => run(store, attempt, request.command.idempotencyKey, command));
}

/** Runs `body`, and records a refusal in the audit trail. */
async function recorded<T>(store: Store, attempt: Attempt, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    await recordRefusal(store, attempt, error);
    throw error;
  }
}

async function run<T, Found>(
  store: Store,
  attempt: Attempt,
  idempotencyKey: string,
  { operation, meaning, authorize, read, apply }: Command<T, Found>,
): Promise<CommandReply<T>> {
  const { caller, now } = attempt;
  const requestHash = createHash('sha256').update(JSON.stringify(meaning)).digest('hex');
  return store.write(async (opened) => {
    const commandId = newId('command', now);
    // All of a command has one time: that of its request.
    const tx: Tx = { ...opened, now, changed: (change) => opened.changed({ ...change, commandId }) };
    const [earlier, found, [own]] = await Promise.all([
      findRow(tx.db, 'commands', { actor_user_id: caller.userId, idempotency_key: idempotencyKey }),
      read?.(tx),
      ownWrites.includes(operation) ? findOwnWrites(tx.db, caller.userId, toTime(now - dayMs)) : [],
      authorize?.(tx, caller),
      readTrailEnd(tx),
    ]);
    if (earlier) {
      if (earlier.operation !== operation || earlier.request_hash !== requestHash) {
        throw new DomainError(
          'idempotency_mismatch',
          'This Idempotency-Key was used before for a different request. Use a new key for a new request.',
        );
      }
      return { commandId: earlier.id, replayed: true, result: JSON.parse(earlier.result) as T };
    }
    const mayTake = takingWrites.includes(operation);
    if (own && !mayTake) requireShare(own, now);
    const { result, about, takesAway = false } = await apply(tx, commandId, found as Found);
    if (own && mayTake && !takesAway) requireShare(own, now);
    await insertRow(tx.db, 'commands', {
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

/** Allowed beyond the daily limit (`mostOwnWrites`), where they take something away. */
const takingWrites: readonly string[] = ['revokeSshKey', 'withdrawAccessRequest', 'closeMySession'];
/** Writes that any member may make, and that leave something for good. */
export const ownWrites: readonly string[] = [
  'registerSshKey',
  'renameSshKey',
  'setLoginPreferences',
  'requestAccess',
  ...takingWrites,
];
const mostOwnWrites = 1_000;

/** Counts a person's own writes since a time, with the time of the first. Refusals, which may be more, are not counted. */
const findOwnWrites = prepared((db, userId: string, since: string) =>
  db
    .selectFrom('audit_entries')
    .select((eb) => [eb.fn.countAll().as('count'), eb.fn.min('at').as('first')])
    .where('actor_user_id', '=', userId)
    .where('result', '=', 'done')
    .where('at', '>', since)
    .where('operation', 'in', ownWrites),
);

/** Throws `too_many_requests` where a person has made all the writes of their own that a day allows. */
function requireShare({ count, first }: { count: unknown; first: string }, now: number): void {
  if (Number(count) < mostOwnWrites) return;
  const again = Date.parse(first) + dayMs;
  throw new TooManyRequests(
    `You have changed your keys, your shell and your requests ${mostOwnWrites} times within a day. It is possible again at ${endText(toTime(again))}; revoking and withdrawing always are.`,
    again - now,
  );
}

interface ReplacementRequest {
  operation: string;
  caller: Caller;
  about: About;
  /** Left out: as if the request had none of them. */
  headers?: Pick<WriteHeaders, 'idempotencyKey' | 'auditReason'>;
  /** Path parameters and body: a replay under the same key has the same. */
  meaning?: readonly unknown[];
  now: number;
}

type Apply<T> = (tx: Tx) => Promise<{ result: T; changed: readonly string[] }>;

/**
 * Runs a replacement in one transaction. `authorize` throws if the caller may not make it. `apply` returns in
 * `changed` the names of the changes, for people. Without an idempotency key, an unchanged document gets no entry;
 * with one, the replacement is done once, and what `apply` returned is kept as the result.
 */
export async function runReplacement<T>(
  store: Store,
  request: ReplacementRequest,
  { authorize, apply }: { authorize(tx: Tx): Promise<void>; apply: Apply<T> },
): Promise<T> {
  const { operation, caller, about, meaning = [], now, headers } = request;
  const { idempotencyKey, auditReason = '' } = headers ?? {};
  if (idempotencyKey !== undefined) {
    const command = { idempotencyKey, auditReason };
    const done = await runCommand<T>(
      store,
      { caller, command, now },
      {
        operation,
        meaning,
        about,
        authorize,
        async apply(tx) {
          const { result, changed } = await apply(tx);
          return { result, about: { details: detailsOf(changed) } };
        },
      },
    );
    return done.result;
  }
  const attempt = { operation, reason: auditReason, caller, about, now };
  return recorded(store, attempt, () =>
    store.write(async (tx) => {
      await authorize(tx);
      const { result, changed } = await apply(tx);
      if (changed.length > 0)
        await appendAuditEntry(tx, { ...entryOf(attempt, 'done'), details: detailsOf(changed) });
      return result;
    }),
  );
}

function detailsOf(changed: readonly string[]): string {
  return changed.length === 0 ? 'Nothing changed' : `Changed: ${changed.join(', ')}`;
}
