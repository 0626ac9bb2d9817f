/** The client that a service offers to its people, and whether it is another one than this. */
import manifest from '../../../package.json' with { type: 'json' };
import { getJson } from './request.ts';
import { join } from './url.ts';

/** Where a service lists its clients; what is there may be read without a token. */
const path = '/download/clients.json';

/** The version of the service at `platformUrl`; undefined where it does not say, as services of before. Never throws. */
export async function offeredVersion(platformUrl: string, timeoutMs: number): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const { status, body } = await getJson({ url: join(platformUrl, path), timeoutMs, signal });
    const version = status === 200 ? body?.version : undefined;
    return typeof version === 'string' && /^\d+\.\d+\.\d+[\w.+-]{0,40}$/.test(version) ? version : undefined;
  } catch {
    return undefined;
  }
}

/** What to tell the person where the service is of that version; undefined where both are of one. */
export function differenceNotice(
  platformUrl: string,
  version: string | undefined,
  { own = manifest.version, platform = process.platform as NodeJS.Platform } = {},
): string | undefined {
  if (version === undefined || version === own) return undefined;
  return `This client is ${own}, and the service at ${platformUrl} is ${version}. ${installLine(platformUrl, platform)} installs the client that fits it.`;
}

/** What a person types to get the client of a service, between backquotes. */
export function installLine(platformUrl: string, platform: NodeJS.Platform = process.platform): string {
  return platform === 'win32'
    ? `\`irm ${platformUrl}/install.ps1 | iex\``
    : `\`curl -fsSL ${platformUrl}/install.sh | sh\``;
}
