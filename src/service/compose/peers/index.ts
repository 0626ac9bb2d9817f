/** Joins the other servers on the same database, or determines that there can be none. */
import { createHash } from 'node:crypto';
import manifest from '../../../../package.json' with { type: 'json' };
import type { ServerSettings } from '../../../domain/server.ts';
import { defaultLimits } from '../../../gateway/ssh/limits.ts';
import type { Logger } from '../../../lib/log.ts';
import { dataDirId } from '../../../store/data-dir/lock.ts';
import type { Store } from '../../../store/engine/index.ts';
import { onlyLead } from '../../../store/servers/leader.ts';
import { type Entrant, enterAlone } from '../../../store/servers/servers.ts';
import type { Config } from '../../config/index.ts';
import type { Peers } from './peers.ts';
import { joinShared, type Times } from './shared.ts';

export interface JoinOptions extends Partial<Times> {
  /** Settings that must be the same on all servers. */
  settings?: ServerSettings;
  now?: () => number;
}

/** Registers this server. Throws `invalid_state` where it may not serve next to the others. */
export async function joinPeers(
  { dataDir, server: { name } }: Pick<Config, 'dataDir'> & { server: Pick<Config['server'], 'name'> },
  store: Store,
  log: Logger,
  { settings = {}, now = Date.now, ...times }: JoinOptions = {},
): Promise<Peers> {
  const entrant: Entrant = { name, version: manifest.version, directory: dataDirId(dataDir), settings };
  if (!store.server.isAlone) return joinShared({ store, entrant, log, now, times });
  await store.write((tx) => enterAlone(tx, entrant), { flush: false });
  return alone(store);
}

function alone(store: Store): Peers {
  const lead = onlyLead(store);
  return {
    lead,
    whileLeading(work) {
      const end = work(lead);
      return () => end('left');
    },
    clockFault: undefined,
    ask: async () => [],
    answer() {},
    forOthers: () => undefined,
    async stop() {},
  };
}

/** Replaces a value that is too long to be shown. */
function hashOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}

/** The settings that must be the same on all servers, by name: trust, addresses shown to people, and lifetimes. No secret is in it. */
export function sharedSettings({ platform, business, console, ...config }: Config): ServerSettings {
  const { identity, gateway, access, retention, uids } = config;
  const { kubernetes, serviceAccountClaim, groups } = identity;
  const graceMs = gateway.limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  const settings: Record<string, string | number | undefined> = {
    'platform.url': platform.url,
    'business.url': business.url,
    'console.url': console?.url,
    'identity.issuer': identity.issuer ?? identity.embedded.url,
    'identity.audiences': identity.audiences.join(' '),
    'identity.secondFactor': identity.secondFactor,
    'identity.cliClientId': identity.cliClientId,
    'identity.kubernetes.clientId': kubernetes?.clientId,
    'identity.kubernetes.usernameClaim': kubernetes?.usernameClaim,
    'identity.serviceAccountClaim': serviceAccountClaim && JSON.stringify(serviceAccountClaim),
    'identity.groups.claim': groups?.source.claim,
    'identity.groups.rules': groups && hashOf(groups.rules),
    'gateway.hostname': gateway.hostname,
    'gateway.port': gateway.port,
    'gateway.confirmGraceSeconds': graceMs / 1000,
    'access.maxHoursWithoutSignIn': access.maxHoursWithoutSignIn,
    'access.endOpenSessions': String(access.endOpenSessions ?? false),
    'gateway.securityKeys': String(gateway.securityKeys),
    'gateway.requireSecurityKeys': access.requireSecurityKeys ?? 'none',
    'access.keyMaxDays': access.keyMaxDays,
    'access.reviewMonths': access.reviewMonths,
    'uids.base': uids.base,
    retention: JSON.stringify(retention),
  };
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value ?? '')]));
}
