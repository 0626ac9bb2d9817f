/** The install scripts: texts of the program, with the URLs and hashes of the current offer. */
import { programText } from '../../lib/packaging.ts';
import type { Offer } from './offer.ts';

/** The oldest Node that runs the portable client (scripts/build/client.ts). */
export const oldestNode = 20;

interface Addresses {
  /** The public URL of the listener that answers. */
  url: string;
  platformUrl: string;
}

export function installScript(
  path: '/install.sh' | '/install.ps1',
  { portable, executables }: Offer,
  { url, platformUrl }: Addresses,
): string {
  const values: Record<string, string> = {
    URL: url,
    PLATFORM_URL: platformUrl,
    MJS_SUM: portable.mjs.sha256,
    EXECUTABLES: executables.map(({ platform, name, sha256 }) => `${platform} ${name} ${sha256}`).join('\n'),
    OLDEST_NODE: String(oldestNode),
  };
  return programText(`service/downloads${path}`).replace(/@([A-Z_]+)@/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : safe(value);
  });
}

/** Rejects characters that end a string or a line of a script; URLs from the configuration have none. */
function safe(value: string): string {
  if (/['`$"\\\r]/.test(value)) throw new Error('an address cannot be put into a script');
  return value;
}
