/**
 * When a socket is read: not while its other side is full, and after a full chunk not before the other sockets have been
 * read. libuv reads one socket up to 32 times in a row, which delayed a keystroke by milliseconds during a copy; one read
 * at a time costs a single copy a tenth of its speed.
 */
import type { Duplex } from 'node:stream';
import type { Barrier } from './barrier.ts';

const FULL_CHUNK = 64 * 1024;

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
