/**
 * Reads a socket into reused memory. Node allocates 64 KiB for each read, unless a socket is made with `onread`. An
 * accepted socket cannot be: it gets the same through the symbols under which Node keeps these options. They are
 * internals of Node, used here alone; where they are missing its bytes come as `data` events.
 *
 * Idle sockets share one buffer, whose bytes are copied out at once. A socket with large reads gets a piece of its
 * own, until a small read.
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
      // Node calls this before the first read and after each.
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

  /** The piece for the next read, never one with another holder; undefined after a small read (the common buffer is used). */
  function next(bytesRead: number): Buffer | undefined {
    const stays = bytesRead >= LARGE;
    if (own && stays && holders(own) === 1) return own;
    if (own) release(own);
    return stays ? take(PIECE) : undefined;
  }
}

/** Node's symbols for the socket fields that `adopt` sets. */
interface Internals {
  kBuffer: symbol;
  kBufferCb: symbol;
  kBufferGen: symbol;
}

/** Passes all chunks to `onChunk`: by the reads that the socket was connected with, or by those it adopts here. */
export function readChunks(socket: Duplex, connected: Reads | undefined, onChunk: Reads['onChunk']): void {
  const reads = connected ?? createReads();
  reads.onChunk = onChunk;
  if (!connected) adopt(socket, reads);
  socket.on('data', onChunk);
}

/**
 * Makes an accepted socket use `reads`; returns false where this Node lacks the internals. Bytes received before are
 * still `data` events, ahead of the others.
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
  // Node reads ahead of a pause; a read now would overtake earlier bytes.
  if (socket.isPaused()) socket.pause();
  return true;
}

/** Undefined unless this Node has all of them. */
function internalsOf(socket: Duplex): Internals | undefined {
  const own = Object.getOwnPropertySymbols(socket);
  const named = (name: string) => own.find((symbol) => symbol.description === name);
  const [kBuffer, kBufferCb, kBufferGen] = ['kBuffer', 'kBufferCb', 'kBufferGen'].map(named);
  return kBuffer && kBufferCb && kBufferGen ? { kBuffer, kBufferCb, kBufferGen } : undefined;
}

const FULL_CHUNK = 64 * 1024;

/**
 * Back-pressure and fairness of reads: a socket is not read while its other side is full, nor after a full chunk
 * before the other sockets have been read. libuv reads one socket up to 32 times in a row, which delayed a keystroke
 * by milliseconds during a copy; one read at a time costs a single copy a tenth of its speed.
 */
export interface Reading {
  hold(held: boolean): void;
  /** Pauses reading for `ms`, then calls `goOn` and reads on; at once where `ms` is not positive. */
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
