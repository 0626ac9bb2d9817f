/** Collects what is sent during one iteration of the event loop, and writes it at once. */
import type { Socket } from 'node:net';
import type { Barrier } from './barrier.ts';

/** Below this copying into one buffer costs less than a write of many pieces. */
const SMALL = 16 * 1024;

export interface Outbox {
  write(data: Buffer): void;
  flush(): void;
  /** Bytes that have not reached the kernel. */
  readonly waiting: number;
}

/** `onFlushed` is called after every write to the socket. */
export function createOutbox(socket: Socket, barrier: Barrier, onFlushed: () => void): Outbox {
  let pieces: Buffer[] = [];
  let bytes = 0;
  let scheduled = false;
  const guardedFlush = barrier.guard(flush);

  function flush() {
    scheduled = false;
    const [only] = pieces;
    if (!only) return;
    if (socket.writable) {
      if (pieces.length === 1) socket.write(only);
      else if (bytes < SMALL) socket.write(Buffer.concat(pieces, bytes));
      else {
        socket.cork();
        for (const piece of pieces) socket.write(piece);
        socket.uncork();
      }
    }
    pieces = [];
    bytes = 0;
    onFlushed();
  }

  return {
    write(data) {
      bytes += data.length;
      const last = pieces.at(-1);
      // Packets relayed in place lie one behind the other: one piece again.
      if (last && last.buffer === data.buffer && last.byteOffset + last.length === data.byteOffset)
        pieces[pieces.length - 1] = Buffer.from(last.buffer, last.byteOffset, last.length + data.length);
      else pieces.push(data);
      if (scheduled) return;
      scheduled = true;
      process.nextTick(guardedFlush);
    },
    flush,
    get waiting() {
      return socket.writableLength + bytes;
    },
  };
}
