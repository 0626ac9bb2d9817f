/** What has to be the same in the configuration of all servers that share a database; each says what it has, and compares. */
import type { Config } from '../config/index.ts';
import type { ServerSettings } from '../domain/server.ts';
import { defaultLimits } from '../gateway/limits.ts';

/** By the names of the settings: whom and what they trust, what they tell people, and when things end. No secret is in it. */
export function sharedSettings({ platform, business, console, ...config }: Config): ServerSettings {
  const { identity, gateway, access, retention, uids } = config;
  const { kubernetes, serviceAccountClaim } = identity;
  const graceMs = gateway.limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  const settings: Record<string, string | number | undefined> = {
    'platform.url': platform.url,
    'business.url': business.url,
    'console.url': console?.url,
    'identity.issuer': identity.issuer ?? identity.embedded.url,
    'identity.audiences': identity.audiences.join(' '),
    'identity.cliClientId': identity.cliClientId,
    'identity.kubernetes.clientId': kubernetes?.clientId,
    'identity.kubernetes.usernameClaim': kubernetes?.usernameClaim,
    'identity.serviceAccountClaim': serviceAccountClaim && JSON.stringify(serviceAccountClaim),
    'gateway.hostname': gateway.hostname,
    'gateway.port': gateway.port,
    'gateway.confirmGraceSeconds': graceMs / 1000,
    'access.maxDaysWithoutSignIn': access.maxDaysWithoutSignIn,
    'access.keyMaxDays': access.keyMaxDays,
    'uids.base': uids.base,
    retention: JSON.stringify(retention),
  };
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value ?? '')]));
}
