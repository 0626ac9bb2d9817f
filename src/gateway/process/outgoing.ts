/** Output of a gateway process: queues of session records, kept until the service has written each, and of log lines. */
import { type EventLevel, type Logger, readable } from '../../lib/log.ts';
import type { GatewayEvent } from '../ssh/events.ts';
import type { Link } from './link.ts';

/** Limits of the queues while the service takes nothing; the log reports how many more were dropped. */
const mostRecords = 10_000;
const mostUnconfirmed = 500;
const mostLines = 1_000;

export class Records {
  readonly #link: Pick<Link, 'send'>;
  readonly #log: Logger;
  readonly #waiting = new Map<number, GatewayEvent>();
  readonly #unconfirmed = new Set<number>();
  #onEmpty = () => {};
  #last = 0;
  #lost = 0;

  constructor(link: Pick<Link, 'send'>, log: Logger) {
    this.#link = link;
    this.#log = log;
  }

  record(event: GatewayEvent): void {
    if (this.#waiting.size >= mostRecords) {
      this.#lost += 1;
      return;
    }
    this.#last += 1;
    // A record waits behind those in the queue, so that the order is kept.
    const isNext = this.#unconfirmed.size === this.#waiting.size;
    this.#waiting.set(this.#last, event);
    if (isNext) this.#send(this.#last, event);
  }

  recorded(seq: number): void {
    this.#waiting.delete(seq);
    this.#unconfirmed.delete(seq);
    if (this.#waiting.size > 0) {
      this.#sendAll();
      return;
    }
    if (this.#lost > 0) this.#log.error('gateway.records.lost', { lost: this.#lost });
    this.#lost = 0;
    this.#onEmpty();
  }

  /** Delivers all unconfirmed records, from the first. */
  deliver(): void {
    this.#unconfirmed.clear();
    this.#sendAll();
  }

  waiting(): Iterable<GatewayEvent> {
    return this.#waiting.values();
  }

  /** Resolves when all records are confirmed, or after `timeoutMs`. */
  async confirmed(timeoutMs: number): Promise<void> {
    if (this.#waiting.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const enough = setTimeout(resolve, timeoutMs);
    this.#onEmpty = resolve;
    await promise;
    clearTimeout(enough);
  }

  #sendAll(): void {
    for (const [seq, event] of this.#waiting)
      if (!this.#unconfirmed.has(seq) && !this.#send(seq, event)) return;
  }

  /** Sends a record if the window of unconfirmed ones has room. After a reconnect `deliver` starts again. */
  #send(seq: number, event: GatewayEvent): boolean {
    const isSent =
      this.#unconfirmed.size < mostUnconfirmed && this.#link.send({ type: 'record', seq, event });
    if (isSent) this.#unconfirmed.add(seq);
    return isSent;
  }
}

export interface RemoteLog extends Logger {
  /** Sends the lines that were logged while the service was away. */
  deliver(): void;
}

/** A log whose lines the service writes. Lines of an unwanted level are dropped. */
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
    // Not queued: each session logs this at every recheck while the service is away.
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
