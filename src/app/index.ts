/**
 * The composition root: configuration → store → operations → listeners, and the same backwards to stop. Only this
 * folder sees every other; what one must know of another is handed over here as a small function.
 */
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { startAudit } from '../audit/index.ts';
import type { Config, HttpConfig } from '../config/index.ts';
import type { Lab } from '../domain/lab.ts';
import { type Gateway, type SessionFilter, startGateway } from '../gateway/index.ts';
import { defaultLimits } from '../gateway/limits.ts';
import { hasNativeCiphers } from '../gateway/ssh2.ts';
import type { ConnectionLimit } from '../http/connection-limit.ts';
import { listen, listenError } from '../http/listen.ts';
import { listHostIds } from '../lib/host-ids.ts';
import type { Logger } from '../lib/log.ts';
import { createTrustedProxies, type TrustedProxies } from '../lib/source-address.ts';
import { loadSshKey, type SshKeyFile } from '../ssh/key-file.ts';
import { raiseNextUid } from '../store/access-lists.ts';
import { type Change, openStore, type Store } from '../store/index.ts';
import { createInstallation } from '../store/installation.ts';
import { closeLostSessions } from '../store/session-records.ts';
import { startSyncLoop } from '../sync/index.ts';
import { createApis } from './apis.ts';
import { createAuthorize } from './authorize-login.ts';
import { createKubernetesSide, createSlurmSide, subjectIssuer } from './drivers.ts';
import { setPasswords, startIssuer, type TokenIssuer } from './issuer.ts';
import { type SessionRecords, startSessionRecords } from './session-records.ts';

export interface AppOptions {
  config: Config;
  log: Logger;
  /** What an empty database is filled with, and the passwords its people get at the embedded issuer. */
  installation?: { lab: Lab; source: string; passwords?: ReadonlyMap<string, string> } | undefined;
  now?: () => number;
}

export interface App extends AsyncDisposable {
  store: Store;
  gatewayFingerprint: string;
  issuerUrl: string;
  /** Whether ssh2's native ciphers are loaded; without them the gateway is several times slower. */
  fastCiphers: boolean;
  /** How long open SSH sessions may go on when it stops. */
  drainMs: number;
}

const stopGraceMs = 700;
/** What only a sign-in needs is loaded when the start is over. */
const warmAfterMs = 100;

/** Starts every part; resolves when all of them serve. Throws a `DomainError` with a sentence where one cannot. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, now = Date.now } = options;
  const metrics = config.metrics && (await import('./metrics.ts')).createMetrics(now);
  const log = metrics?.watch(options.log) ?? options.log;
  const parts = new AsyncDisposableStack();
  // What talks to people stops at the same time, before anything that it needs.
  const fronts: { stop(): Promise<void> }[] = [];
  try {
    const store = timed(await openStore(config.dataDir, { now }), log);
    parts.defer(() => store.close());
    const { passwordsSet } = await fillStore(store, options, now());
    const hostKey = loadSshKey(join(config.dataDir, 'keys/gateway_host_ed25519'));
    const clientKey = loadSshKey(join(config.dataDir, 'keys/gateway_client_ed25519'));
    const proxies = createTrustedProxies(config.trustedProxies);
    const { connectionsPerSource: perSource, connections: inAll } = config.http;
    const serve = (name: string, at: HttpConfig, handler: RequestListener) =>
      serveHttp(name, at, handler, { perSource, inAll, proxies, log });
    const issuer = await startIssuer(config, { store, proxies, log, now });
    parts.defer(() => issuer.stop());
    if (issuer.handle) {
      fronts.push(await serve('embedded issuer', config.identity.embedded, issuer.handle));
    }

    await recordLostSessions(store, log, now());
    const audit = startAudit(config.audit, { store, dataDir: config.dataDir, log, now });
    parts.defer(() => audit.stop());
    const records = startSessionRecords(store, log);
    parts.defer(() => records.stop());
    const gateway = await openGateway(config, { store, proxies, hostKey, clientKey, records, log, now });
    fronts.push(gateway);
    parts.defer(recheckOnChange(store, gateway, log));

    const { business, platform } = createApis({
      config,
      store,
      proxies,
      issuer,
      hostKey,
      clientKey,
      gateway,
      audit,
      log,
      now,
    });
    fronts.push(await serve('Business API', config.business, business));
    fronts.push(await serve('Platform API', config.platform, platform));

    if (config.metrics && metrics) {
      const handler = metrics.handler(() => gateway.sessions().length);
      fronts.push(await serve('metrics', config.metrics, handler));
    }

    // Last to start, when nothing else can fail. It stops behind the fronts, so that people read that the server
    // stops, and not that their login node did.
    const loop = await startSync({ config, store, clientKey, gateway, log, now });
    parts.defer(() => loop.stop());
    parts.defer(() => stopAll(fronts));

    parts.defer(warmSoon(issuer, log));
    await passwordsSet;
    const started = parts.move();
    return {
      store,
      gatewayFingerprint: hostKey.fingerprint,
      issuerUrl: issuer.url,
      fastCiphers: hasNativeCiphers,
      drainMs: config.gateway.limits.drainMs ?? defaultLimits.drainMs,
      [Symbol.asyncDispose]: () => started.disposeAsync(),
    };
  } catch (error) {
    await stopAll(fronts);
    await parts.disposeAsync();
    throw error;
  }
}

function startSync(deps: {
  config: Config;
  store: Store;
  clientKey: SshKeyFile;
  gateway: Gateway;
  log: Logger;
  now(): number;
}) {
  const { config, store, clientKey, gateway, log, now } = deps;
  return startSyncLoop({
    store,
    drivers: {
      slurm: (cluster) =>
        createSlurmSide(cluster, {
          config,
          store,
          gatewayKey: clientKey.publicKey,
          endSessions: (loginNode) => {
            const text = 'The login node is restarting. Log in again in a moment.';
            gateway.close({ clusterId: cluster.id, loginNode }, 'login_node_restarting', text);
          },
          log,
        }),
      kubernetes: (cluster, wake) => createKubernetesSide(cluster, wake, { config, store, log }),
    },
    subjectIssuer: subjectIssuer(config),
    intervalMs: config.sync.intervalMs,
    log,
    now,
  });
}

/** Gives an empty database its installation. Hashing passwords goes on when it resolves: see `passwordsSet`. */
async function fillStore(store: Store, { config, installation }: AppOptions, at: number) {
  await raiseNextUid(store, config.uids.base, listHostIds());
  if (installation) await createInstallation(store, installation.lab, installation.source, at);
  // Hashing takes a second of other threads' time: the rest starts meanwhile, and nobody can sign in yet.
  const passwordsSet = setPasswords(store, installation?.passwords ?? new Map(), at);
  passwordsSet.catch(() => {});
  return { passwordsSet };
}

/** Closes the records of sessions that were open when the process ended without a stop. */
async function recordLostSessions(store: Store, log: Logger, at: number): Promise<void> {
  const lost = await closeLostSessions(store, new Date(at).toISOString());
  if (lost > 0) log.info('gateway.sessions.lost', { sessions: lost });
}

/** Loads what sign-ins need after a while. Returns how to cancel that. */
function warmSoon(issuer: TokenIssuer, log: Logger): () => void {
  const warming = setTimeout(() => {
    issuer.warm().catch((error) => log.error('issuer.failed', { error }));
  }, warmAfterMs);
  return () => clearTimeout(warming);
}

/** The SSH gateway, which asks the store about every login, and again for as long as a session lives. */
function openGateway(
  config: Config,
  deps: {
    store: Store;
    proxies: TrustedProxies;
    hostKey: SshKeyFile;
    clientKey: SshKeyFile;
    records: SessionRecords;
    log: Logger;
    now(): number;
  },
): Promise<Gateway> {
  const { store, proxies, hostKey, clientKey, records, log, now } = deps;
  const { limits, proxyProtocol } = config.gateway;
  const graceMs = limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  return startGateway({
    listen: config.gateway.listen,
    hostKey: hostKey.privateKey,
    clientKey: clientKey.privateKey,
    limits,
    isProxy: (address) => proxies.has(address),
    proxyProtocol: proxyProtocol ?? 'optional',
    record: (event) => records.record(event),
    authorize: createAuthorize({ store, graceMs, now }),
    log,
  }).catch((error: NodeJS.ErrnoException) => {
    throw listenError(error, { name: 'SSH gateway', ...config.gateway.listen });
  });
}

/** Logs how long each write took. */
function timed(store: Store, log: Logger): Store {
  return {
    ...store,
    async write(body, flush) {
      const started = performance.now();
      const result = await store.write(body, flush);
      log.debug('store.written', { ms: Math.round((performance.now() - started) * 100) / 100 });
      return result;
    },
  };
}

async function stopAll(fronts: { stop(): Promise<void> }[]): Promise<void> {
  await Promise.all(fronts.splice(0).map((front) => front.stop()));
}

/** Sessions are checked again after every commit that could end one. */
function recheckOnChange(store: Store, gateway: Gateway, log: Logger): () => void {
  return store.onChange((changes) => {
    for (const change of changes) {
      gateway.recheck(sessionsOf(change)).catch((error) => log.error('gateway.recheck.failed', { error }));
    }
  });
}

/** Whose sessions a change can end: narrowly, since a busy gateway has many. An organization's are all of them. */
function sessionsOf(change: Change): SessionFilter {
  if ('userId' in change) return { userId: change.userId };
  if ('clusterId' in change) return { clusterId: change.clusterId };
  if ('observedClusterId' in change) return { clusterId: change.observedClusterId };
  return {};
}

async function serveHttp(
  name: string,
  { listen: address, tls }: HttpConfig,
  handler: RequestListener,
  limit: ConnectionLimit,
) {
  const listener = await listen(handler, { name, ...address, tls, limit });
  return { stop: () => listener.stop(stopGraceMs) };
}
