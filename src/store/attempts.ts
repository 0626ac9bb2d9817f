/** Attempts to change something, as the audit trail has them: done, or refused, up to a bound that nobody can flood. */
import type { AuditEntry } from '../domain/audit.ts';
import { DomainError, type ErrorCode } from '../domain/error.ts';
import type { Caller, CommandHeaders } from '../domain/operation.ts';
import { appendAuditEntry } from './audit.ts';
import type { Store } from './index.ts';
import { toTime } from './time.ts';

/** What a change is made on, as the audit trail says it. */
export type About = Pick<AuditEntry, 'target' | 'organizationId' | 'clusterId' | 'subjectUserId' | 'details'>;

/** What the trail says of an attempt, besides what became of it. */
export interface Attempt {
  operation: string;
  headers: Pick<CommandHeaders, 'auditReason'>;
  caller: Caller;
  about: About;
  now: number;
}

/** The entry of an attempt. */
export function entryOf({ operation, headers, caller, about, now }: Attempt, result: string): AuditEntry {
  return {
    ...about,
    at: toTime(now),
    actorUserId: caller.userId,
    operation,
    reason: headers.auditReason,
    sourceAddress: caller.sourceAddress,
    result,
  };
}

/** Refusals that say something of what a person tried; the others are faults of ours. */
const audited: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'forbidden',
  'not_found',
  'invalid_state',
  'idempotency_mismatch',
  'precondition_failed',
]);

/** Each server counts for itself, by design: the bound is against a flood, and a second server at most doubles it. */
const refusals = new WeakMap<Store, Map<string, Recent>>();
/** A trail that anyone signed in could fill by asking again and again would be no help to anyone. */
const mostRefusals = 60;
const refusalWindowMs = 60_000;
const mostKinds = 20;

/** A person's refusals within a minute: how many have an entry, and what the others were. */
interface Recent {
  count: number;
  since: number;
  further: Map<string, number>;
}

/**
 * Writes down that an attempt was refused. Each has its entry, up to a bound a person and minute; what comes on top is
 * summed up in one more. Never throws.
 */
export async function recordRefusal(store: Store, attempt: Attempt, error: unknown): Promise<void> {
  if (!(error instanceof DomainError) || !audited.has(error.code)) return;
  const people = refusals.get(store) ?? new Map<string, Recent>();
  refusals.set(store, people);
  const { userId } = attempt.caller;
  let recent = people.get(userId);
  if (recent && attempt.now - recent.since >= refusalWindowMs) {
    await sumUp(store, attempt, recent);
    recent = undefined;
  }
  recent ??= { count: 0, since: attempt.now, further: new Map() };
  people.set(userId, recent);
  recent.count += 1;
  const result = `refused: ${error.code}`;
  if (recent.count <= mostRefusals) {
    await append(store, { ...entryOf(attempt, result), details: error.message });
    return;
  }
  const { further } = recent;
  if (further.size === 0) setTimeout(() => void sumUp(store, attempt, recent), refusalWindowMs).unref();
  const kind = `${attempt.operation} on ${attempt.about.target.slice(0, 80)}`;
  const known = further.size < mostKinds || further.has(kind) ? kind : 'others';
  further.set(known, (further.get(known) ?? 0) + 1);
}

/** One entry for what had none of its own; nothing when there was nothing, or it was summed up before. */
async function sumUp(store: Store, attempt: Attempt, { further }: Recent): Promise<void> {
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

/** The refusal stands whether or not it can be written down. */
async function append(store: Store, entry: AuditEntry): Promise<void> {
  await store.write((tx) => appendAuditEntry(tx, entry)).catch(() => {});
}
