/** Short messages between the servers of a database, to those that run now: nothing keeps them, and they can be lost. */
import { EventEmitter } from 'node:events';
import type { Others } from './dialect.ts';

export interface Messages {
  /**
   * Sends to every other server that runs now; resolves when the database has it. The body is small: below 4 KiB as JSON, or
   * it throws. Where there can be no other server, it does nothing.
   */
  send(topic: string, body: object): Promise<void>;
  /** Calls `listener` for each message about the topic, with the ID of the server that sent it; returns how to stop. */
  on(topic: string, listener: (body: unknown, from: string) => void): () => void;
}

const mostBytes = 4096;

/**
 * `received` passes a message to the listeners of its topic. It may come from another version, in any form: a message that
 * makes a listener throw is reported to `onFault`, and dropped, as any message can be lost.
 */
export function createMessages(
  others: Pick<Others, 'send'> | undefined,
  onFault: (topic: string, error: unknown) => void = () => {},
): Messages & {
  received(topic: string, body: unknown, from: string): void;
} {
  const events = new EventEmitter<Record<string, [unknown, string]>>();
  events.setMaxListeners(0);
  return {
    async send(topic, body) {
      if (Buffer.byteLength(JSON.stringify(body)) >= mostBytes)
        throw new Error(`a message about ${topic} is longer than ${mostBytes} bytes`);
      await others?.send(topic, body);
    },
    on(topic, listener) {
      events.on(eventOf(topic), listener);
      return () => void events.off(eventOf(topic), listener);
    },
    received(topic, body, from) {
      for (const listener of events.listeners(eventOf(topic))) {
        try {
          if (typeof body !== 'object' || body === null || Array.isArray(body))
            throw new Error('the message is no object');
          listener(body, from);
        } catch (error) {
          onFault(topic, error);
        }
      }
    },
  };
}

/** Splits things into as few lists as possible, at least one, each below so many bytes as JSON or with one thing alone. */
export function inParts<T extends object>(things: readonly T[], mostBytes: number): T[][] {
  const parts: T[][] = [[]];
  let bytes = 0;
  for (const thing of things) {
    const size = Buffer.byteLength(JSON.stringify(thing)) + 1;
    if (bytes + size > mostBytes && bytes > 0) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(thing);
    bytes += size;
  }
  return parts;
}

/** `error` is special to an emitter. */
function eventOf(topic: string): string {
  return `about ${topic}`;
}
