/** A send buffer: collects the writes of one iteration of the event loop, and flushes them at once. */
import { writeSync, writevSync } from 'node:fs';
import type { Barrier } from './barrier.ts';
import { hold, holders, release } from './memory.ts';
import type { ByteStream } from './transport-options.ts';

/** Below this size copying into one buffer costs less than a write of many pieces. */
const SMALL = 16 * 1024;

export class Outbox {
  readonly #socket: ByteStream;
  readonly #barrier: Barrier;
  readonly #onFlushed: () => void;
  readonly #flushLater: () => void;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isScheduled = false;

  /** `onFlushed` is called after every write to the socket. */
  constructor(socket: ByteStream, barrier: Barrier, onFlushed: () => void) {
    this.#socket = socket;
    this.#barrier = barrier;
    this.#onFlushed = onFlushed;
    const guardedFlush = barrier.guard(() => this.flush());
    this.#flushLater = () => process.nextTick(guardedFlush);
  }

  /** Bytes that have not reached the kernel. */
  get waiting(): number {
    return this.#socket.writableLength + this.#bytes;
  }

  write(data: Buffer): void {
    this.#bytes += data.length;
    const pieces = this.#pieces;
    const last = pieces.at(-1);
    // Packets relayed in place are adjacent in memory: joined into one piece again.
    if (last && last.buffer === data.buffer && last.byteOffset + last.length === data.byteOffset)
      pieces[pieces.length - 1] = Buffer.from(last.buffer, last.byteOffset, last.length + data.length);
    else {
      // Held from now on, not from the flush: the next read may come before that.
      hold(data);
      pieces.push(data);
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#flushLater();
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#pieces.length === 0) return;
    const isSmall = this.#pieces.length > 1 && this.#bytes < SMALL;
    const now = isSmall ? [join(this.#pieces, this.#bytes)] : this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    if (this.#socket.writable) this.#send(now);
    else now.forEach(release);
    this.#onFlushed();
  }

  #send(now: readonly Buffer[]): void {
    let taken = writeNow(this.#socket, now);
    const left: Buffer[] = [];
    for (const piece of now) {
      if (taken < piece.length) left.push(piece.subarray(taken));
      else release(piece);
      taken = Math.max(0, taken - piece.length);
    }
    if (left.length === 0) return;
    this.#socket.cork();
    for (const piece of left) this.#wait(piece);
    this.#socket.uncork();
  }

  /** A write from reused memory holds it until the kernel has the bytes. */
  #wait(piece: Buffer): void {
    const isReused = holders(piece) > 0;
    this.#socket.write(piece, isReused ? this.#barrier.guard(() => release(piece)) : undefined);
  }
}

function join(pieces: Buffer[], bytes: number): Buffer {
  const joined = Buffer.concat(pieces, bytes);
  pieces.forEach(release);
  return joined;
}

/**
 * Writes as many bytes as the kernel takes at once, and returns their number. Node's streams do the same in the end,
 * at several times the cost of the system call, paid twice for every keystroke. Returns 0 while writes are queued in
 * the socket, which keeps their order; where Node does not show the file descriptor; and on errors, which the socket
 * itself reports at its next write.
 */
export function writeNow(socket: ByteStream, pieces: readonly Buffer[]): number {
  const { fd = -1 } = (socket as { _handle?: { fd?: number } | null })._handle ?? {};
  if (fd < 0 || socket.connecting || socket.writableLength > 0) return 0;
  try {
    const [only] = pieces;
    return pieces.length === 1 && only ? writeSync(fd, only) : writevSync(fd, pieces);
  } catch {
    // Mostly EAGAIN: the socket buffer is full.
    return 0;
  }
}
