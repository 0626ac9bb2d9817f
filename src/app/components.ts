/** A part of the composition root: what `andromeda version` says of the native code that the server runs on. */
import { fastCiphersLoad } from '../gateway/fast-ciphers.ts';
import { sqliteVersion } from '../store/sqlite-version.ts';

/** Both are loaded to be asked, so that what is said is so. */
export async function components(): Promise<Record<string, string>> {
  return { sqlite: sqlite(), 'fast SSH ciphers': fastCiphersLoad() ? 'loaded' : 'not loaded' };
}

function sqlite(): string {
  try {
    return sqliteVersion();
  } catch (error) {
    return `not loaded: ${error instanceof Error ? error.message : error}`;
  }
}
