/** A part of the composition root: what `andromeda version` says of the native code that the server runs on. */
import { fastCiphersLoad, slowCiphers } from '../../gateway/ssh/transport/fast-ciphers.ts';
import { messageOf } from '../../lib/error-message.ts';
import { files } from '../../store/engine/engine.ts';

/** Both are loaded to be asked, so that what is said is so. */
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

/** What to do where copies are slower than they could be. */
export function cipherWarning(): string | undefined {
  return fastCiphersLoad() ? undefined : slowCiphers;
}
