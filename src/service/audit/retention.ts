/**
 * Deletes data that is older than the configured retention: stored results of commands, details of sessions, and
 * entries of the audit trail, up to a checkpoint signed with the installation's key. It works in small parts with
 * pauses between them; a crash at any instant leaves a valid trail, and the next run continues.
 */
import { requestsLapseBefore } from '../../domain/access/request.ts';
import type { AuditKey, EntryTexts } from '../../domain/audit/audit.ts';
import type { Logger } from '../../lib/log.ts';
import { type AuditListing, findCheckpoint, findLastSeq, findPosition } from '../../store/audit/audit.ts';
import {
  deleteBeforeCheckpoint,
  deleteOld,
  findLastTimeBefore,
  forgetKeyAddresses,
  redactEntries,
  setCheckpoint,
} from '../../store/audit/retention.ts';
import type { Store } from '../../store/engine/index.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import { deleteOldHistory } from '../../store/organizations/holdings.ts';
import { systemUserId } from '../../store/people/people.ts';
import { inParts, pause } from './erasure.ts';
import { type AuditSigner, type ChainLink, fittingPages } from './signer.ts';

/** Days that each is kept; left out: for ever. */
export interface RetentionSettings {
  commands?: number;
  sessions?: number;
  audit?: number;
}

export interface RetentionDeps {
  store: Store;
  key(): AuditKey;
  signer: AuditSigner;
  /** The file that gets a copy: entries that are not in it yet are not deleted. */
  file: string | undefined;
  log: Logger;
  /** True while the service has run for less than a day: its clock is trusted less then. */
  isNew?(): boolean;
}

const dayMs = 86_400_000;
/** Limit on entries deleted with one checkpoint. */
const mostDeleted = 5_000;

export async function applyRetention(
  deps: RetentionDeps,
  settings: RetentionSettings,
  signal: AbortSignal,
): Promise<void> {
  const now = await timeThatCounts(deps);
  const before = (days: number | undefined) => (days === undefined ? undefined : now - days * dayMs);
  const [commands, sessions, audit] = [settings.commands, settings.sessions, settings.audit].map(before);
  if (commands !== undefined) {
    await inParts(true, () => deleteOld(deps.store, 'commands', commands), signal);
    const decided = Math.min(commands, requestsLapseBefore(now));
    await inParts(true, () => deleteOld(deps.store, 'access_requests', decided), signal);
  }
  if (sessions !== undefined) {
    await inParts(true, () => deleteOld(deps.store, 'ssh_sessions', sessions), signal);
    await inParts(true, () => forgetKeyAddresses(deps.store, sessions), signal);
    await redactSessions(deps, sessions, signal);
  }
  if (audit !== undefined) await deps.store.write((tx) => deleteOldHistory(tx, toTime(audit)));
  if (audit !== undefined) await deleteEntries(deps, { before: audit, days: settings.audit }, signal);
}

/**
 * The time from which days are counted. After a start, a wrong clock looks the same as a right one after a long stop
 * of the service; so for a day, a gap in the trail before the recent entries does not count as time that passed.
 */
async function timeThatCounts({ store, log, isNew }: RetentionDeps): Promise<number> {
  const now = store.lapses.now();
  if (!isNew?.()) return now;
  // Entries of the last day by this clock may all have been written with a wrong clock.
  const earlier = await findLastTimeBefore(store.read, now - dayMs);
  if (earlier === undefined || now - earlier <= 2 * dayMs) return now;
  const message = `The trail has nothing of the time between ${toTime(earlier)} and a day ago. For a day, retention counts from then: is the clock of this host right?`;
  log.warn('retention.waits', { message });
  return earlier;
}

/** Reduces a session's entry to person, operation, target and time. */
function redactSession({ operation, target }: AuditListing): EntryTexts | undefined {
  if (!operation.startsWith('ssh.')) return undefined;
  return { target, reason: '', source_address: '', details: '' };
}

async function redactSessions(deps: RetentionDeps, before: number, signal: AbortSignal): Promise<void> {
  const { store, key } = deps;
  const at = toTime(store.lapses.now());
  const until = await findLastSeq(store.read);
  const sign = (previous: string, entry: AuditListing) => key().signRedaction(previous, entry, at);
  const redactSome = async (after: number) => {
    let isOld = false;
    const redact = (entry: AuditListing) => {
      if (!isBefore(entry, before)) return undefined;
      isOld = true;
      return redactSession(entry);
    };
    const next = await redactEntries(store, { after, until, redact, sign });
    return isOld ? next : undefined;
  };
  await inParts((await findCheckpoint(store.read))?.seq ?? 0, redactSome, signal);
}

function isBefore({ at }: { at: string }, before: number): boolean {
  return fromTime(at) < before;
}

/** Sets a checkpoint behind old entries and deletes them, in batches. */
async function deleteEntries(
  deps: RetentionDeps,
  { before, days }: { before: number; days: number | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { store, signer, key, log } = deps;
  let from: ChainLink = (await findCheckpoint(store.read)) ?? { seq: 0, hash: '' };
  // Entries that a crash left undeleted last time.
  await inParts(true, () => deleteBeforeCheckpoint(store, from.seq), signal);
  await signer.sign(store);
  const until = (await lastToGo(deps)) - 1;
  while (!signal.aborted) {
    const end = Math.min(until, from.seq + mostDeleted);
    const last: ChainLink = await lastBefore(store, from, { end, before }, signal);
    if (last.seq === from.seq) return;
    const range = `${from.seq + 1}-${last.seq}`;
    const checkpoint = key().signCheckpoint({ ...last, at: toTime(store.lapses.now()) });
    await setCheckpoint(store, checkpoint, {
      actorUserId: systemUserId,
      operation: 'deleteAuditEntries',
      target: range,
      reason: `Older than ${days} days (retention.audit)`,
      result: 'done',
      details: `The trail begins behind entry ${last.seq}, ${last.hash}`,
    });
    await inParts(true, () => deleteBeforeCheckpoint(store, last.seq), signal);
    log.info('retention.deleted', { entries: range });
    from = last;
  }
}

/** Deletable entries are before this one: the last entry stays, and those that the copy lacks. */
async function lastToGo({ store, file }: RetentionDeps): Promise<number> {
  const last = await findLastSeq(store.read);
  return file === undefined ? last : Math.min(last, (await findPosition(store.read, file)).entry);
}

/** The last entry after `from` that is older than `before`. Throws for a tampered trail, which is not deleted. */
async function lastBefore(
  store: Store,
  from: ChainLink,
  { end, before }: { end: number; before: number },
  signal: AbortSignal,
): Promise<ChainLink> {
  let last = from;
  for await (const page of fittingPages(store, from, end)) {
    const young = page.findIndex((entry) => !isBefore(entry, before));
    const { seq, hash } = (young === -1 ? page : page.slice(0, young)).at(-1) ?? last;
    last = { seq, hash };
    if (young !== -1) break;
    await pause(signal);
  }
  return last;
}
