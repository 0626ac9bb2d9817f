import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** The warning where they do not load; scripts/install.mjs has the same sentence. */
export const slowCiphers =
  'Copies over SSH are slower until a C++ compiler, make and Python 3 are here: install them, then npm run postinstall.';

/**
 * Checks whether ssh2's native ciphers load, as ssh2 does, without the rest of it: without them the gateway is 3 to 9
 * times slower. Creates no cipher: one that lives when the process ends can abort it, as the addon calls a Node that
 * is gone.
 */
export function fastCiphersLoad(): boolean {
  try {
    require('ssh2/lib/protocol/crypto/build/Release/sshcrypto.node');
    return true;
  } catch {
    return false;
  }
}
