/** A part of the composition root: what the gateway tells of sessions goes to the audit trail, in order and later. */
import type { GatewayEvent } from '../gateway/events.ts';
import { entryOf, repeatedEntry } from '../gateway/records.ts';
import type { Logger } from '../lib/log.ts';
import type { Store } from '../store/index.ts';
import { appendSessionEntries, type SessionEntry } from '../store/session-records.ts';

export interface SessionRecords {
  record(event: GatewayEvent): void;
  /** Writes down what is left. */
  stop(): Promise<void>;
}

/** Entries of one transaction: few enough to take a millisecond or two. */
const pageSize = 20;
/** While the database takes no writes, so many wait; the log has the rest. */
const maxWaiting = 10_000;
const retryMs = 1_000;
/** Repeated refusals within this are one entry, with a count. */
const repeatMs = 60_000;
const maxRepeats = 1_000;

/** Takes events at once and writes them behind the scenes; what the disk refuses for a while is tried again. */
export function startSessionRecords(store: Store, log: Logger): SessionRecords {
  const waiting: SessionEntry[] = [];
  const repeats = new Map<
    string,
    { event: GatewayEvent & { kind: 'refused' }; since: number; more: number }
  >();
  const sweeper = setInterval(() => sweep(Date.now() - repeatMs), repeatMs / 4).unref();
  let lost = 0;
  let stopped = false;
  let writing: Promise<void> | undefined;

  function record(event: GatewayEvent) {
    if (event.kind !== 'refused') return push(entryOf(event));
    const { userId, clusterId } = event.subject;
    const key = JSON.stringify([userId, clusterId, event.reason, event.attempt.remoteAddress]);
    const known = repeats.get(key);
    if (known && event.at - known.since < repeatMs) {
      known.event = event;
      known.more += 1;
      return;
    }
    if (known?.more) push(repeatedEntry(known.event, known.more));
    if (repeats.size >= maxRepeats) sweep(Number.POSITIVE_INFINITY);
    repeats.set(key, { event, since: event.at, more: 0 });
    push(entryOf(event));
  }

  /** Writes down the counts of those that began before. */
  function sweep(before: number) {
    for (const [key, { event, since, more }] of repeats) {
      if (since > before) continue;
      repeats.delete(key);
      if (more > 0) push(repeatedEntry(event, more));
    }
  }

  function push(entry: SessionEntry) {
    if (waiting.length >= maxWaiting) {
      lost += 1;
      return;
    }
    waiting.push(entry);
    writing ??= write().finally(() => {
      writing = undefined;
    });
  }

  async function write() {
    // Not in the turn in which somebody's login or keystroke is being handled.
    await new Promise((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const page = waiting.slice(0, pageSize);
      try {
        await appendSessionEntries(store, page);
        waiting.splice(0, page.length);
      } catch (error) {
        log.error('gateway.records.failed', { error, waiting: waiting.length, lost });
        if (stopped) return;
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
      }
    }
    if (lost > 0) log.error('gateway.records.lost', { lost });
    lost = 0;
  }

  return {
    record,
    async stop() {
      clearInterval(sweeper);
      sweep(Number.POSITIVE_INFINITY);
      stopped = true;
      await writing;
    },
  };
}
