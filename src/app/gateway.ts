/** A part of the composition root: the SSH gateway with what it asks the store, and what it leaves in the audit trail. */
import type { Config } from '../config/index.ts';
import type { Authorize } from '../gateway/decision.ts';
import { defaultLimits } from '../gateway/limits.ts';
import { entryOf } from '../gateway/records.ts';
import type { Gateways } from '../gateway-process/gateways.ts';
import { openGateways } from '../gateway-process/index.ts';
import { listenError } from '../http/listen.ts';
import type { Logger } from '../lib/log.ts';
import type { Tracer } from '../lib/trace.ts';
import type { SshKeyFile } from '../ssh/key-file.ts';
import { heldKeys, type SshKeySet } from '../ssh/key-set.ts';
import type { Store } from '../store/index.ts';
import { listServers } from '../store/servers.ts';
import { closeLostSessions, listSessionEntryKeys, sessionEntryKey } from '../store/session-records.ts';
import { createAuthorize } from './authorize-login.ts';
import { takeOverFrom } from './previous-server.ts';
import type { SessionRecords } from './session-records.ts';
import { traceLogins } from './trace-logins.ts';

/** More entries about sessions than processes have on their way when the service is cut off. */
const recentEntries = 10_000;

export interface GatewayDeps {
  store: Store;
  hostKey: SshKeySet;
  clientKey: SshKeyFile;
  records: SessionRecords;
  /** As the store says, when left out. */
  authorize?: Authorize;
  log: Logger;
  tracer?: Tracer | undefined;
  /** Of the program, where it is not this one's. */
  build?: string | undefined;
}

/** Finds the gateway that lives from before, or begins to start one. Nobody gets in before `startGateway`. */
export function openGateway(config: Config, deps: GatewayDeps): Promise<Gateways> {
  const { store, hostKey, clientKey, records, log } = deps;
  const { listen, limits, processes, account, proxyProtocol } = config.gateway;
  const graceMs = limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  let written: Promise<Set<string>> | undefined;
  return openGateways({
    dataDir: config.dataDir,
    processes,
    account,
    settings: {
      listen,
      hostKey: hostKey.privateKey,
      otherHostKeys: heldKeys(hostKey)
        .slice(1)
        .map(({ privateKey }) => privateKey),
      clientKey: clientKey.privateKey,
      limits,
      trustedProxies: config.trustedProxies,
      proxyProtocol: proxyProtocol ?? 'optional',
      debug: config.log.level === 'debug',
    },
    record: (event) => records.record(event),
    isRecorded: async (event) => {
      written ??= listSessionEntryKeys(store, recentEntries);
      return (await written).has(sessionEntryKey(entryOf(event)));
    },
    authorize: traceLogins(deps.authorize ?? createAuthorize({ store, graceMs }), deps.tracer),
    log,
    build: deps.build,
  });
}

/**
 * Closes the records of sessions that no process has any more, then lets the gateway serve. Throws
 * `service_unavailable` with a sentence when its address cannot be had.
 */
export async function startGateway(
  gateway: Gateways,
  { config, store, log, now }: { config: Config; store: Store; log: Logger; now(): number },
): Promise<void> {
  const { listen } = config.gateway;
  const lost = await closeLostSessions(store, new Date(now()).toISOString(), {
    spared: gateway.held,
    before: store.server.isAlone ? undefined : await namesBefore(config, store),
  });
  if (lost > 0) log.info('gateway.sessions.lost', { sessions: lost });
  await gateway.start().catch((error: NodeJS.ErrnoException) => {
    throw listenError(error, { name: 'SSH gateway', ...listen });
  });
}

/** What this server was called before, where others have sessions that are not its own. */
async function namesBefore({ dataDir }: Config, store: Store): Promise<string[]> {
  const live = new Set((await listServers(store)).filter((one) => one.isLive).map(({ id }) => id));
  const isLive = (id: string) => live.has(id);
  const before = takeOverFrom(dataDir, { server: store.server.id, isLive });
  return before === undefined ? [] : [before];
}
