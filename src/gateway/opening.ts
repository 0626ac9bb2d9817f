/** A client's first bytes, buffered until its list of ciphers is known, or until it waits for ours. */
import { readClientCiphers } from './algorithms.ts';
import type { Barrier } from './barrier.ts';

/** How long the gateway waits for the KEXINIT of a client before it reads on without it. */
const OPENING_MS = 500;

export interface Opening {
  feed(chunk: Buffer): void;
  /** Waits no longer; onOpened is not called. */
  stop(): void;
}

/** `onOpened` is called once, with the ciphers where they are known and the bytes so far. */
export function createOpening(
  barrier: Barrier,
  onOpened: (ciphers: readonly string[] | undefined, bytes: Buffer) => void,
): Opening {
  let bytes: Buffer = Buffer.alloc(0);
  const timer = barrier.after(OPENING_MS, () => onOpened(undefined, bytes));
  return {
    feed(chunk) {
      bytes = Buffer.concat([bytes, chunk]);
      const ciphers = readClientCiphers(bytes);
      if (ciphers === 'more') return;
      clearTimeout(timer);
      onOpened(ciphers, bytes);
    },
    stop: () => clearTimeout(timer),
  };
}
