/** Buffers a client's first bytes until its KEXINIT is complete, or until a timeout, as the client may wait for ours. */
import { SSH, WireError } from '../../../lib/ssh/wire.ts';
import { readFirstInit } from './algorithms.ts';
import type { Barrier } from './barrier.ts';
import type { KexInit } from './hybrid-kex.ts';
import type { Protocol } from './ssh2.ts';

/** Timeout for the KEXINIT of a client, after which the gateway reads on without it. */
const OPENING_MS = 500;

export interface Opening {
  feed(chunk: Buffer): void;
  /** Stops waiting; `onOpened` is not called. */
  stop(): void;
}

/** `onOpened` is called once, with the bytes so far and the KEXINIT if it is complete. */
export function createOpening(
  barrier: Barrier,
  onOpened: (init: KexInit | undefined, bytes: Buffer) => void,
): Opening {
  let bytes: Buffer = Buffer.alloc(0);
  const timer = barrier.after(OPENING_MS, () => onOpened(undefined, bytes));
  return {
    feed(chunk) {
      bytes = Buffer.concat([bytes, chunk]);
      const init = readFirstInit(bytes);
      if (init === 'more') return;
      clearTimeout(timer);
      onOpened(init, bytes);
    },
    stop: () => clearTimeout(timer),
  };
}

/**
 * Intercepts the client's message of the first key exchange that costs CPU, so that `onMessage` can delay it: earlier
 * messages cost little. For a protocol that has just read the other side's version.
 */
export function awaitExchange(protocol: Protocol, onMessage: (goOn: () => void) => void): void {
  const decipher = protocol._decipher;
  const proceed = decipher._onPayload;
  decipher._onPayload = (payload) => {
    if (payload[0] !== SSH.KEX_ECDH_INIT || protocol._skipNextInboundPacket) return proceed(payload);
    // Without our answer the client has no keys, and nothing more to send.
    decipher._onPayload = () => {
      throw new WireError('a message before the key exchange was answered');
    };
    onMessage(() => {
      decipher._onPayload = proceed;
      proceed(payload);
    });
    return undefined;
  };
}
