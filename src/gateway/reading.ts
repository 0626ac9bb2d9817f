/**
 * When a socket is read: not while its other side is full, and after some full chunks not before the other sockets have had
 * their turn. libuv reads one socket up to 32 times in a row, which made a key wait milliseconds beside a copy.
 */
import type { Socket } from 'node:net';

/** What one read brings at most. */
const FULL_CHUNK = 64 * 1024;
/** Resting after each one costs a tenth of the speed. */
const CHUNKS_IN_A_ROW = 4;

export interface Reading {
  /** Stops it, or lets it go on. */
  hold(held: boolean): void;
  /** To be told of every chunk. */
  onChunk(length: number): void;
}

export function createReading(socket: Socket): Reading {
  let held = false;
  let resting = false;
  let inARow = 0;

  function apply() {
    if (held || resting) socket.pause();
    else socket.resume();
  }

  return {
    hold(now) {
      if (held === now) return;
      held = now;
      apply();
    },
    onChunk(length) {
      inARow = length < FULL_CHUNK ? 0 : inARow + 1;
      if (inARow < CHUNKS_IN_A_ROW || resting) return;
      inARow = 0;
      resting = true;
      apply();
      setImmediate(() => {
        resting = false;
        apply();
      });
    },
  };
}
