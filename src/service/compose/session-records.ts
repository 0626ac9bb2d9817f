/** A part of the composition root: writes the gateway's session events to the audit trail, in order and in the background. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionUses } from '../../domain/access/ssh-session.ts';
import type { SessionEntry } from '../../domain/audit/audit.ts';
import type { GatewayEvent } from '../../gateway/ssh/events.ts';
import type { Logger } from '../../lib/log.ts';
import {
  appendSessionEntries,
  listSessionEntryKeys,
  sessionEntryKey,
} from '../../store/audit/open-sessions.ts';
import { faultMessage } from '../../store/engine/engine.ts';
import type { Store } from '../../store/engine/index.ts';

export interface SessionRecords {
  /** Resolves when it is written, or dropped from a full queue; never rejects. `mayBeWritten`: perhaps by the previous service. */
  record(event: GatewayEvent, mayBeWritten?: boolean): Promise<void>;
  stop(): Promise<void>;
}

interface QueuedEntry {
  entry: SessionEntry;
  mayBeWritten: boolean;
  done(): void;
}

/** Entries in one transaction: few enough to take a millisecond or two. */
const pageSize = 20;
/** Limit of the queue while the database takes no writes; the log reports how many were dropped. */
const maxWaiting = 10_000;
const retryMs = 1_000;
/** More session entries than processes have in transit when the service is cut off. */
const recentEntries = 10_000;
/** Repeated refusals within this time are one entry, with a count. */
const repeatMs = 60_000;
const maxRepeats = 1_000;

/** Queues events at once and writes them in the background; writes that the disk refuses are retried. */
export function startSessionRecords(store: Store, log: Logger): SessionRecords {
  const waiting: QueuedEntry[] = [];
  const withoutWritten = createWrittenFilter(store);
  const repeats = createRepeats((entry) => void push(entry, false));
  let lost = 0;
  const logFailure = createFailureLog(log);
  const stopping = new AbortController();
  let writing: Promise<void> | undefined;

  function push(entry: SessionEntry, mayBeWritten: boolean): Promise<void> {
    if (waiting.length >= maxWaiting) {
      lost += 1;
      return Promise.resolve();
    }
    const written = new Promise<void>((done) => waiting.push({ entry, mayBeWritten, done }));
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return written;
  }

  async function write() {
    // Not in the iteration of the event loop that handles a login or a keystroke.
    await new Promise((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const page = waiting.slice(0, pageSize);
      try {
        await appendSessionEntries(store, await withoutWritten(page));
        for (const { done } of waiting.splice(0, page.length)) done();
      } catch (error) {
        logFailure(error, { waiting: waiting.length, lost });
        if (stopping.signal.aborted) return;
        await sleep(retryMs, undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
    if (lost > 0) log.error('gateway.records.lost', { lost });
    lost = 0;
  }

  return {
    async record(event, mayBeWritten = false) {
      if (event.kind !== 'refused' || repeats.isFirst(event)) await push(entryOf(event), mayBeWritten);
    },
    async stop() {
      repeats.stop();
      stopping.abort();
      await writing;
    },
  };
}

/** Logs a lasting failure once a minute. */
function createFailureLog(log: Logger) {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (error: unknown, fields: { waiting: number; lost: number }): void => {
    if (performance.now() - saidAt < repeatMs) return;
    saidAt = performance.now();
    log.error('gateway.records.failed', { error: faultMessage(error) ?? error, ...fields });
  };
}

type RefusedEvent = GatewayEvent & { kind: 'refused' };

/** Counts repetitions of refusals. `push` gets their counts, after a minute and at the end. */
function createRepeats(push: (entry: SessionEntry) => void) {
  const repeats = new Map<string, { event: RefusedEvent; since: number; more: number }>();
  const sweeper = setInterval(() => sweep(Date.now() - repeatMs), repeatMs / 4).unref();
  function sweep(before: number) {
    for (const [key, { event, since, more }] of repeats) {
      if (since > before) continue;
      repeats.delete(key);
      if (more > 0) push(repeatedEntry(event, more));
    }
  }
  return {
    /** True for a refusal that gets an entry of its own. */
    isFirst(event: RefusedEvent): boolean {
      const { userId, clusterId } = event.subject;
      const key = JSON.stringify([userId, clusterId, event.reason, event.attempt.remoteAddress]);
      const known = repeats.get(key);
      if (known && event.at - known.since < repeatMs) {
        known.event = event;
        known.more += 1;
        return false;
      }
      if (known?.more) push(repeatedEntry(known.event, known.more));
      if (repeats.size >= maxRepeats) sweep(Number.POSITIVE_INFINITY);
      repeats.set(key, { event, since: event.at, more: 0 });
      return true;
    },
    stop() {
      clearInterval(sweeper);
      sweep(Number.POSITIVE_INFINITY);
    },
  };
}

/** Filters out entries that the trail already has, which is read once; a failed read is retried by the caller, like a write. */
function createWrittenFilter(store: Store): (page: readonly QueuedEntry[]) => Promise<SessionEntry[]> {
  let written: ReadonlySet<string> | undefined;
  return async (page) => {
    if (page.some(({ mayBeWritten }) => mayBeWritten))
      written ??= await listSessionEntryKeys(store, recentEntries);
    return page.flatMap(({ entry, mayBeWritten }) =>
      mayBeWritten && written?.has(sessionEntryKey(entry)) ? [] : [entry],
    );
  };
}

/** The entry of an event: done by the person, to themselves, on the cluster. */
export function entryOf(event: GatewayEvent): SessionEntry {
  const at = new Date(event.at).toISOString();
  if (event.kind === 'refused') {
    const { subject, attempt, reason, message } = event;
    return {
      at,
      actorUserId: subject.userId,
      operation: 'ssh.login.refused',
      target: subject.keyId,
      clusterId: subject.clusterId,
      subjectUserId: subject.userId,
      reason: message,
      sourceAddress: attempt.remoteAddress,
      result: `refused: ${reason}`,
      details: `key ${attempt.fingerprint}`,
    };
  }
  const { session } = event;
  const who = `key ${session.keyId} ${session.fingerprint}, login node ${session.loginNode}`;
  const entry = {
    at,
    actorUserId: session.userId,
    target: session.id,
    clusterId: session.clusterId,
    subjectUserId: session.userId,
    sourceAddress: session.remoteAddress,
    result: 'done',
    session,
  };
  if (event.kind === 'opened')
    return { ...entry, operation: 'ssh.session.opened', reason: 'login', details: who };
  const { uses } = event;
  const seconds = Math.round((event.at - Date.parse(session.openedAt)) / 1000);
  const details = [
    who,
    `opened ${session.openedAt}, ${seconds} s`,
    ...(uses ? [`${session.bytesUp} bytes up, ${session.bytesDown} down`, ...describeUses(uses)] : []),
  ].join('; ');
  return { ...entry, operation: 'ssh.session.closed', reason: event.reason, details, ...(uses && { uses }) };
}

/** The entry that counts repeated refusals, the last of which is `event`. */
function repeatedEntry(event: GatewayEvent & { kind: 'refused' }, count: number): SessionEntry {
  const entry = entryOf(event);
  return { ...entry, details: `${entry.details}; ${count} more ${count === 1 ? 'time' : 'times'}` };
}

function describeUses(uses: SessionUses): string[] {
  const { shells, files, commands, commandCount, forwards, forwardCount } = uses;
  const parts: string[] = [];
  if (shells > 0) parts.push(shells === 1 ? 'a shell' : `${shells} shells`);
  if (files > 0) parts.push('sftp');
  if (commandCount > 0) {
    const list = commands.map((command) => JSON.stringify(command)).join(', ');
    const more = commandCount > commands.length ? ` and ${commandCount - commands.length} more` : '';
    parts.push(`${commandCount === 1 ? 'command' : `${commandCount} commands`}: ${list}${more}`);
  }
  if (forwardCount > 0) {
    const times = forwardCount === 1 ? '' : `, ${forwardCount} times`;
    parts.push(`forwards to ${forwards.join(', ')}${times}`);
  }
  return parts;
}
