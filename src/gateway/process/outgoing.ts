/** What a gateway process reports: records of sessions, until each is written down, and lines of the log. */
import { type EventLevel, type Logger, readable } from '../../lib/log.ts';
import type { GatewayEvent } from '../ssh/events.ts';
import type { Link } from './link.ts';

/** While the service takes nothing, so many wait; the log says how many more there were. */
const mostRecords = 10_000;
/** So many are on their way at a time. */
const mostUnconfirmed = 500;
const mostLines = 1_000;

export interface Records {
  record(event: GatewayEvent): void;
  /** The service has written this one down. */
  recorded(seq: number): void;
  /** Delivers all that are not confirmed, from the first. */
  deliver(): void;
  /** Those that are waiting. */
  waiting(): Iterable<GatewayEvent>;
  /** Resolves when all are confirmed, or after a while. */
  confirmed(timeoutMs: number): Promise<void>;
}

export function createRecords(link: Pick<Link, 'send'>, log: Logger): Records {
  const waiting = new Map<number, GatewayEvent>();
  const unconfirmed = new Set<number>();
  let onEmpty = () => {};
  let last = 0;
  let lost = 0;

  /** Sends what may be on its way. A connection that breaks begins with `deliver`. */
  function send() {
    if (unconfirmed.size >= mostUnconfirmed) return;
    for (const [seq, event] of waiting) {
      if (unconfirmed.size >= mostUnconfirmed) return;
      if (unconfirmed.has(seq)) continue;
      if (!link.send({ type: 'record', seq, event })) return;
      unconfirmed.add(seq);
    }
  }

  return {
    record(event) {
      if (waiting.size >= mostRecords) {
        lost += 1;
        return;
      }
      last += 1;
      waiting.set(last, event);
      const isNext = unconfirmed.size === waiting.size - 1 && unconfirmed.size < mostUnconfirmed;
      if (isNext && link.send({ type: 'record', seq: last, event })) unconfirmed.add(last);
    },
    recorded(seq) {
      waiting.delete(seq);
      unconfirmed.delete(seq);
      if (waiting.size > 0) return send();
      if (lost > 0) log.error('gateway.records.lost', { lost });
      lost = 0;
      onEmpty();
    },
    deliver() {
      unconfirmed.clear();
      send();
    },
    waiting: () => waiting.values(),
    async confirmed(timeoutMs) {
      if (waiting.size === 0) return;
      await new Promise<void>((resolve) => {
        const enough = setTimeout(resolve, timeoutMs);
        onEmpty = () => {
          clearTimeout(enough);
          resolve();
        };
      });
    },
  };
}

export interface RemoteLog extends Logger {
  /** Sends what was said while the service was away. */
  deliver(): void;
}

/** A log whose lines the service writes. Those of a level that is not wanted go nowhere. */
export function createRemoteLog(
  link: Pick<Link, 'send' | 'isSlow'>,
  isWanted: (level: EventLevel) => boolean,
): RemoteLog {
  let waiting: { type: 'log'; level: EventLevel; event: string; fields: Record<string, unknown> }[] = [];
  let dropped = 0;
  const at = (level: EventLevel) => (event: string, fields: object) => {
    if (!isWanted(level)) return;
    const line = { type: 'log' as const, level, event, fields: readable(fields) };
    if (waiting.length === 0 && !link.isSlow && link.send(line)) return;
    // Each session logs at every recheck that the service does not answer.
    if (event === 'gateway.recheck.failed') return;
    if (waiting.length < mostLines) waiting.push(line);
    else dropped += 1;
  };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    deliver() {
      const lines = waiting;
      waiting = [];
      if (dropped > 0) {
        const fields = { lines: dropped };
        lines.push({ type: 'log', level: 'warn', event: 'gateway.log.dropped', fields });
      }
      dropped = 0;
      for (const line of lines) if (!link.send(line)) waiting.push(line);
    },
  };
}
