/**
 * Cuts AEAD packets out of a byte stream: `length(4) · body · tag(16)`. A packet that lies whole in a chunk is handed out
 * where it lies; one that is split over chunks is put together once, with its head and tag, so that either can be
 * encrypted again in place.
 */
import { release, take as takeMemory } from './memory.ts';

export const TAG = 16;

/** Where reading of the chunk goes on after a delivered packet, as ssh2's own ciphers return it. */
export type Further = number | false | undefined;

export interface Framer {
  /** Reads from `from` on; returns where another parser has to go on (the end, when all is read). */
  read(chunk: Buffer, from: number): number;
}

/** `bodyLength` reads and checks the length field, once a packet; `deliver` gets the whole packet, still encrypted. */
export function createFramer(
  bodyLength: (header: Buffer) => number,
  deliver: (packet: Buffer) => Further,
): Framer {
  const header = Buffer.alloc(4);
  let headerLength = 0;
  let partial: Buffer | undefined;
  let partialLength = 0;

  /** Returns the next whole packet, or stores what has come of it. */
  function take(chunk: Buffer, at: number): Buffer | undefined {
    if (partial === undefined) {
      const n = Math.min(4 - headerLength, chunk.length - at);
      chunk.copy(header, headerLength, at, at + n);
      const before = headerLength;
      headerLength += n;
      if (headerLength < 4) return undefined;
      const total = 4 + bodyLength(header) + TAG;
      headerLength = 0;
      if (before === 0 && chunk.length - at >= total) return chunk.subarray(at, at + total);
      // What went before this chunk is in the header: count from where the packet began.
      partial = takeMemory(total);
      header.copy(partial);
      partialLength = before;
    }
    const n = Math.min(partial.length - partialLength, chunk.length - at);
    chunk.copy(partial, partialLength, at, at + n);
    partialLength += n;
    if (partialLength < partial.length) return undefined;
    const whole = partial;
    partial = undefined;
    return whole;
  }

  return {
    read(chunk, from) {
      let at = from;
      while (at < chunk.length) {
        const taken = partial === undefined ? headerLength : partialLength;
        const packet = take(chunk, at);
        if (packet === undefined) return chunk.length;
        at += packet.length - taken;
        const further = deliver(packet);
        if (packet.buffer !== chunk.buffer) release(packet);
        if (further !== undefined) return further === false ? at : further;
      }
      return at;
    },
  };
}

/** How a direction frames its packets: the block that lengths are a multiple of, and whether the length is encrypted. */
export type Framing = 'gcm' | 'chacha' | 'other';

/** Packets can be framed here where the native addon does the cipher. */
export function cipherFraming(cipher: string, made: { _instance?: object }): Framing {
  if (made._instance === undefined) return 'other';
  if (cipher.includes('-gcm')) return 'gcm';
  return cipher.startsWith('chacha20') ? 'chacha' : 'other';
}
