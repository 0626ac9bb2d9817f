import { commandIo } from '../lib/command-io.ts';
import { isSafeUrl } from '../lib/source-address.ts';
import { usage } from './exit.ts';

export interface EnvironmentOptions {
  profile?: string;
  url?: string;
}

export interface Selection {
  profile: string;
  /** The URL for this command only: `--url`, or else ANDROMEDA_URL. */
  url: string | undefined;
  /** The URL is from `--url`: at login, that binds the profile (contract, "Profiles"). */
  explicit: boolean;
}

/** Flags go before environment variables (contract, "Profiles"). */
export function selectEnvironment(options: EnvironmentOptions): Selection {
  const { env } = commandIo();
  const profile = options.profile ?? (env.ANDROMEDA_PROFILE || 'default');
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(profile))
    throw usage('A profile name has 1 to 64 letters, digits, dots, underscores or hyphens.');
  const url = options.url ?? (env.ANDROMEDA_URL || undefined);
  return {
    profile,
    url: url === undefined ? undefined : parsePlatformUrl(url),
    explicit: options.url !== undefined,
  };
}

/** Normalizes a Platform base URL, which is the key of stored sessions. */
function parsePlatformUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || !url.hostname)
    throw usage(`'${text}' is not a platform URL; it looks like https://platform.example.org.`);
  if (url.username || url.password || url.search || url.hash)
    throw usage('A platform URL carries no user name, password, query or fragment.');
  if (!isSafeUrl(url))
    throw usage(`${url.origin} is plain http; only https is used, except towards this machine itself.`);
  return url.href.replace(/\/+$/, '');
}
