/**
 * Reads a socket into reused memory. Node allocates 64 KiB for each read, unless a socket is made with `onread`. An
 * accepted socket cannot be: it gets the same through the symbols under which Node keeps these options. They are internals
 * of Node, used here alone; where they are missing its bytes come as `data` events.
 *
 * Idle sockets share one buffer, whose bytes are copied out at once. A socket from which much comes gets a piece of its
 * own, until little comes.
 */
import type { Duplex } from 'node:stream';
import type { Barrier } from './barrier.ts';
import { holders, LARGE, PIECE, release, take } from './memory.ts';

export interface Reads {
  /** Gets every chunk, which is valid until this returns, or while its memory has a holder (memory.ts). It must not throw. */
  onChunk: (chunk: Buffer) => void;
  readonly onread: { buffer(): Buffer; callback(bytesRead: number, memory: Uint8Array): boolean };
}

/** Reads are synchronous, one at a time: one buffer is enough for all sockets that have none of their own. */
const common = Buffer.allocUnsafeSlow(PIECE);

export function createReads(): Reads {
  let own: Buffer | undefined;
  const reads: Reads = {
    onChunk() {},
    onread: {
      // Node asks before the first read and after each.
      buffer: () => own ?? common,
      callback(bytesRead) {
        if (own) reads.onChunk(own.subarray(0, bytesRead));
        else readCommon(bytesRead);
        own = next(bytesRead);
        return true;
      },
    },
  };
  return reads;

  function readCommon(bytesRead: number) {
    const chunk = take(bytesRead);
    common.copy(chunk, 0, 0, bytesRead);
    reads.onChunk(chunk);
    release(chunk);
  }

  /** The piece to read into next: not one that has another holder; none after a small read (the common buffer is used). */
  function next(bytesRead: number): Buffer | undefined {
    const stays = bytesRead >= LARGE;
    if (own && stays && holders(own) === 1) return own;
    if (own) release(own);
    return stays ? take(PIECE) : undefined;
  }
}

/** What `adopt` touches of a socket, by the names of Node's symbols. */
interface Internals {
  kBuffer: symbol;
  kBufferCb: symbol;
  kBufferGen: symbol;
}

/** Gives `onChunk` all that comes: by the reads that the socket was connected with, or by those it adopts here. */
export function readChunks(socket: Duplex, connected: Reads | undefined, onChunk: Reads['onChunk']): void {
  const reads = connected ?? createReads();
  reads.onChunk = onChunk;
  if (!connected) adopt(socket, reads);
  socket.on('data', onChunk);
}

/**
 * From now on an accepted socket is read by `reads`; false where this Node has no such thing. Bytes that have come before
 * are `data` events still, ahead of the others.
 */
export function adopt(socket: Duplex, { onread }: Reads): boolean {
  const symbols = internalsOf(socket);
  const handle = (socket as { _handle?: { useUserBuffer?(buffer: Buffer): void } })._handle;
  if (!symbols || !handle?.useUserBuffer) return false;
  const memory = onread.buffer();
  Object.assign(socket, {
    [symbols.kBuffer]: memory,
    [symbols.kBufferCb]: onread.callback,
    [symbols.kBufferGen]: onread.buffer,
  });
  handle.useUserBuffer(memory);
  // Node reads ahead of a pause; what is read now would overtake what came before.
  if (socket.isPaused()) socket.pause();
  return true;
}

/** Undefined unless each of them is there. */
function internalsOf(socket: Duplex): Internals | undefined {
  const own = Object.getOwnPropertySymbols(socket);
  const named = (name: string) => own.find((symbol) => symbol.description === name);
  const [kBuffer, kBufferCb, kBufferGen] = ['kBuffer', 'kBufferCb', 'kBufferGen'].map(named);
  return kBuffer && kBufferCb && kBufferGen ? { kBuffer, kBufferCb, kBufferGen } : undefined;
}

const FULL_CHUNK = 64 * 1024;

/**
 * When a socket is read: not while its other side is full, and after a full chunk not before the other sockets have been
 * read. libuv reads one socket up to 32 times in a row, which delayed a keystroke by milliseconds during a copy; one read
 * at a time costs a single copy a tenth of its speed.
 */
export interface Reading {
  hold(held: boolean): void;
  /** Reads nothing for as long, then calls `goOn` and reads on. At once where there is nothing to wait for. */
  delay(ms: number, goOn: () => void): void;
  onChunk(length: number): void;
}

export function createReading(socket: Duplex, barrier: Barrier): Reading {
  let held = false;
  let resting = false;
  let delayed = false;

  const goOn = barrier.guard(() => {
    resting = false;
    apply();
  });

  function apply() {
    if (held || resting || delayed) socket.pause();
    else socket.resume();
  }

  return {
    hold(now) {
      if (held === now) return;
      held = now;
      apply();
    },
    delay(ms, whenOver) {
      if (ms <= 0) {
        whenOver();
        return;
      }
      delayed = true;
      apply();
      barrier.after(ms, () => {
        delayed = false;
        whenOver();
        apply();
      });
    },
    onChunk(length) {
      if (length < FULL_CHUNK || resting) return;
      resting = true;
      apply();
      setImmediate(goOn);
    },
  };
}
