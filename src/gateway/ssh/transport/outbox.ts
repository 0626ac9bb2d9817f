/** Collects what is sent during one iteration of the event loop, and writes it at once. */
import type { Socket } from 'node:net';
import type { Barrier } from './barrier.ts';
import { hold, holders, release } from './memory.ts';
import { writeNow } from './write-now.ts';

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
    if (pieces.length === 0) return;
    const now = pieces.length > 1 && bytes < SMALL ? [join(pieces, bytes)] : pieces;
    pieces = [];
    bytes = 0;
    if (socket.writable) send(now);
    else now.forEach(release);
    onFlushed();
  }

  function send(now: readonly Buffer[]) {
    let taken = writeNow(socket, now);
    const left: Buffer[] = [];
    for (const piece of now) {
      if (taken < piece.length) left.push(piece.subarray(taken));
      else release(piece);
      taken = Math.max(0, taken - piece.length);
    }
    if (left.length === 0) return;
    socket.cork();
    left.forEach(wait);
    socket.uncork();
  }

  /** What lies in reused memory is held until the kernel has it. */
  function wait(piece: Buffer) {
    if (holders(piece) === 0) socket.write(piece);
    else
      socket.write(
        piece,
        barrier.guard(() => release(piece)),
      );
  }

  return {
    write(data) {
      bytes += data.length;
      const last = pieces.at(-1);
      // Packets relayed in place lie one behind the other: one piece again.
      if (last && last.buffer === data.buffer && last.byteOffset + last.length === data.byteOffset)
        pieces[pieces.length - 1] = Buffer.from(last.buffer, last.byteOffset, last.length + data.length);
      else {
        // From here on, not from the flush: the next read may come before that.
        hold(data);
        pieces.push(data);
      }
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

function join(pieces: Buffer[], bytes: number): Buffer {
  const joined = Buffer.concat(pieces, bytes);
  pieces.forEach(release);
  return joined;
}
