/** A part of the composition root: the state of native code for `andromeda version`. */
import { fastCiphersLoad, slowCiphers } from '../../gateway/ssh/transport/fast-ciphers.ts';
import { messageOf } from '../../lib/error-message.ts';
import { files } from '../../store/engine/engine.ts';

/** Loads both libraries, so that the answer is true. */
export async function components(): Promise<Record<string, string>> {
  const slow = cipherWarning();
  return {
    sqlite: sqlite(),
    'fast SSH ciphers': slow === undefined ? 'loaded' : `not loaded. ${slow}`,
  };
}

function sqlite(): string {
  try {
    return files.version();
  } catch (error) {
    return `not loaded: ${messageOf(error)}`;
  }
}

/** The advice where copies are slower than they could be; undefined where they are not. */
export function cipherWarning(): string | undefined {
  return fastCiphersLoad() ? undefined : slowCiphers;
}
