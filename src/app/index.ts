/**
 * The composition root: configuration → store → operations → listeners, and the same backwards to stop. Only this
 * folder sees every other; what one must know of another is handed over here as a small function.
 */
import type { RequestListener } from 'node:http';
import manifest from '../../package.json' with { type: 'json' };
import { startAudit } from '../audit/index.ts';
import { startBackups } from '../backup/index.ts';
import { createDownloads, type Downloads } from '../clients/index.ts';
import type { Config, HttpConfig } from '../config/index.ts';
import type { Lab } from '../domain/lab.ts';
import { defaultLimits } from '../gateway/limits.ts';
import { hasNativeCiphers } from '../gateway/ssh2.ts';
import { type Clock, createClock, logClockJumps } from '../lib/clock.ts';
import { messageOf } from '../lib/error-message.ts';
import { listHostIds } from '../lib/host-ids.ts';
import type { Logger } from '../lib/log.ts';
import { portableClient, programText } from '../lib/packaging.ts';
import { createTrustedProxies, type TrustedProxies } from '../lib/source-address.ts';
import { inSpan, type Tracer } from '../lib/trace.ts';
import { heldKeys, type SshKeySet } from '../ssh/key-set.ts';
import { raiseNextUid } from '../store/access-lists.ts';
import { openStore, type Store, storeForRequests } from '../store/index.ts';
import { createInstallation } from '../store/installation.ts';
import { noteKeysInUse } from '../store/keys-in-use.ts';
import type { Leases } from '../store/leases.ts';
import { noteServerKeys } from '../store/server-keys.ts';
import { type SyncLoop, startSyncLoop } from '../sync/index.ts';
import { openAcme } from './acme.ts';
import { createActivityCounts } from './activity.ts';
import { type AllGateways, joinGateways } from './all-gateways.ts';
import { type ApiParts, createApis } from './apis.ts';
import { watchCertificates } from './certificates.ts';
import { startConsole } from './console.ts';
import { createKubernetesSide, createSlurmSide, subjectIssuer } from './drivers.ts';
import { Fronts, type Served } from './fronts.ts';
import { openGateway, startGateway } from './gateway.ts';
import { setPasswords, startIssuer, type TokenIssuer } from './issuer.ts';
import { warnOfLapses } from './lapses.ts';
import { announceEnds } from './permission-ends.ts';
import { joinServers } from './servers.ts';
import { loadServiceKeys, type ServiceKeys, watchIssuerKeys } from './service-keys.ts';
import { startSessionRecords } from './session-records.ts';
import { sharedSettings } from './shared-settings.ts';

export interface AppOptions {
  config: Config;
  log: Logger;
  /** What an empty database is filled with, and the passwords its people get at the embedded issuer. */
  installation?: { lab: Lab; source: string; passwords?: ReadonlyMap<string, string> } | undefined;
  /** The time of day; a test's also counts as the time that passes, unless it gives `uptime`. */
  now?: () => number;
  uptime?: () => number;
  /** Resolves when it is to wait no longer for a database that is away. */
  stopping?: Promise<unknown> | undefined;
}

export interface App extends AsyncDisposable {
  store: Store;
  gatewayFingerprint: string;
  issuerUrl: string;
  /** Whether ssh2's native ciphers are loaded; without them the gateway is several times slower. */
  fastCiphers: boolean;
  /** How long open SSH sessions may go on when it stops. */
  drainMs: number;
  /** How long, before that, it answers what still comes. */
  lingerMs: number;
  /**
   * Stops all but the gateway's processes, which go on for the service that follows. Resolves to what ends them where none
   * follows.
   */
  leave(): Promise<() => Promise<void>>;
}

/** What only a sign-in needs is loaded when the start is over. */
const warmAfterMs = 100;

/** Starts every part; resolves when all of them serve. Throws a `DomainError` with a sentence where one cannot. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config } = options;
  const clock = createClock(options);
  const { now } = clock;
  const { metrics, activity, log } = await watchLog(options, now);
  const parts = new AsyncDisposableStack();
  const fronts = new Fronts(config);
  let leave: 'all' | 'found' | undefined;
  try {
    parts.defer(watchCertificates(config, log, now));
    const tracer = await startTracer(parts, config, log);
    const { store, leases } = await openShared(parts, { ...options, clock, log });
    parts.defer(activity.begin(store, log));
    parts.defer(logClockJumps(clock, log));
    parts.defer(warnOfLapses(store, log, leases));
    const { passwordsSet } = await fillStore(store, options);
    const sync: ApiParts['sync'] = {};
    const proxies = createTrustedProxies(config.trustedProxies);
    const downloads = offerClients(config, proxies, log);
    const common = { config, store, leases, log, tracer, now, sync, downloads };
    const asked = { ...common, store: storeForRequests(store) };
    const keys = await loadServiceKeys(config, common);
    const acme = await openAcme(config, { ...common, ...keys });
    parts.defer(() => acme?.stop());
    const serve = fronts.serveWith({ proxies, acme, log });
    // First of all: a process of its own needs a moment to start.
    const records = startSessionRecords(store, log);
    const gateway = await openGateway(config, { store, ...keys, records, log, tracer });
    fronts.gateway = gateway;
    const issuer = await startIssuer(config, { ...asked, ...keys, proxies, clock });
    parts.defer(() => issuer.stop());
    if (issuer.handle) await serve('embedded issuer', config.identity.embedded, issuer.handle);

    const audit = startAudit(config.audit, { ...config, store, leases, key: keys.auditKey, log, now });
    parts.defer(() => audit.stop());
    parts.defer(() => records.stop());
    const gatewayStarted = startGateway(gateway, common);
    gatewayStarted.catch(() => {});
    const gates = { gateway, gateways: joinGateways(parts, { ...common, gateway }) };
    const apis = createApis({ ...asked, ...keys, ...gates, proxies, issuer, audit, activity, acme, fronts });
    const served: [string, Served | undefined, RequestListener | undefined][] = [
      ['Business API', config.business, apis.business],
      ['Platform API', config.platform, apis.platform],
      ['metrics', config.metrics, metrics?.handler(() => gateway.count())],
      ['ACME challenges', config.acme?.listen && { listen: config.acme.listen }, acme?.handler],
    ];
    for (const [name, at, handler] of served) if (at && handler) await serve(name, at, handler);
    await addConsole(fronts, serve, { ...asked, ...clock, ...keys, apis, issuer, proxies });
    acme?.begin();
    await gatewayStarted;
    parts.defer(await noteAndFollowKeys(common, keys, issuer));
    // Last to start, when nothing else can fail. It stops behind the fronts, so that people read that the server
    // stops, and not that their login node did.
    sync.loop = await startSync(parts, { ...common, ...keys, ...gates });
    parts.defer(() => fronts.stop(leave));
    startLater(parts, { ...common, issuer });
    await passwordsSet;
    const started = parts.move();
    return {
      store,
      gatewayFingerprint: keys.hostKey.fingerprint,
      issuerUrl: issuer.url,
      fastCiphers: hasNativeCiphers,
      drainMs: config.gateway.limits.drainMs ?? defaultLimits.drainMs,
      lingerMs: fronts.drainMs + fronts.lingerMs,
      async leave() {
        leave = 'all';
        await started.disposeAsync();
        return () => gateway.endLeft();
      },
      [Symbol.asyncDispose]: () => started.disposeAsync(),
    };
  } catch (error) {
    // Sessions from before must not end because this start fails.
    leave = 'found';
    await fronts.stop(leave);
    await parts.disposeAsync();
    throw error;
  }
}

/** The log as the parts get it: what they tell it is counted, for metrics and for how it went over time. */
async function watchLog({ config, log }: AppOptions, now: () => number) {
  const metrics = config.metrics && (await import('./metrics.ts')).createMetrics(now, config);
  const activity = createActivityCounts();
  return { metrics, activity, log: activity.watch(metrics?.watch(log) ?? log) };
}

/** The database, and what this server does of what one of those that share it does at a time. Last to stop. */
async function openShared(
  parts: AsyncDisposableStack,
  { config, clock, log, stopping }: Pick<AppOptions, 'config' | 'log' | 'stopping'> & { clock: Clock },
): Promise<{ store: Store; leases: Leases }> {
  const { database, access } = config;
  const store = timed(await openStore(config.dataDir, { clock, access, database, log, stopping }), log);
  parts.defer(() => store.close());
  const { leases, stop } = await joinServers(config, store, log, {
    settings: sharedSettings(config),
    now: clock.now,
  });
  parts.defer(stop);
  return { store, leases };
}

/** What people get to work with, without a token. */
function offerClients({ dataDir, platform }: Config, proxies: TrustedProxies, log: Logger): Downloads {
  return createDownloads({
    dataDir,
    version: manifest.version,
    platformUrl: platform.url,
    portable: portableClient,
    text: programText,
    proxies,
    log,
  });
}

/** What traces are told to. Last to stop, for what the others do when they stop. */
async function startTracer(
  parts: AsyncDisposableStack,
  { tracing }: Config,
  log: Logger,
): Promise<Tracer | undefined> {
  if (!tracing) return undefined;
  const started = (await import('./tracing.ts')).startTracing(tracing, log);
  parts.defer(() => started.stop());
  return started;
}

/** Notes which keys this service has taken up, for the commands that put others in their place. */
async function noteKeys(
  { config, store, now }: { config: Config; store: Store; now(): number },
  { hostKey, clientKey, secrets }: ServiceKeys,
  issuer: TokenIssuer,
): Promise<void> {
  const ids = ({ fingerprint, next }: SshKeySet) => ({ current: fingerprint, next: next?.fingerprint });
  const taken = {
    host: ids(hostKey),
    client: ids(clientKey),
    ...(issuer.keyIds && { issuer: issuer.keyIds }),
  };
  const inUse = noteKeysInUse(config.dataDir, taken, now());
  if (secrets) await noteServerKeys(store, inUse);
}

/** Notes the keys, and takes up those of the issuer that another server, or a command, puts in place. Resolves to how to stop. */
async function noteAndFollowKeys(
  common: { config: Config; store: Store; log: Logger; now(): number },
  keys: ServiceKeys,
  issuer: TokenIssuer,
): Promise<() => void> {
  const { config, store, log } = common;
  await noteKeys(common, keys, issuer);
  return watchIssuerKeys(keys, { dataDir: config.dataDir, store, log }, (next) => {
    issuer.useKeys?.(next);
    noteKeys(common, keys, issuer).catch((error: unknown) =>
      log.error('secrets.unreadable', { error: messageOf(error) }),
    );
  });
}

async function startSync(
  parts: AsyncDisposableStack,
  deps: {
    config: Config;
    store: Store;
    leases: Leases;
    clientKey: SshKeySet;
    secrets: ServiceKeys['secrets'];
    gateways: AllGateways;
    log: Logger;
    now(): number;
  },
): Promise<SyncLoop> {
  const { config, store, leases, clientKey, secrets, gateways, log, now } = deps;
  const loop = await startSyncLoop({
    store,
    leases,
    drivers: {
      slurm: (cluster, lease) =>
        createSlurmSide(cluster, lease, {
          config,
          store,
          gatewayKeys: heldKeys(clientKey).map(({ publicKey }) => publicKey),
          secrets,
          endSessions: (loginNode) => {
            const text = 'The login node is restarting. Log in again in a moment.';
            gateways.close({ clusterId: cluster.id, loginNode }, 'login_node_restarting', text);
          },
          log,
        }),
      kubernetes: (cluster, wake, { confirm }) =>
        createKubernetesSide(cluster, wake, { config, store, confirm, log }),
    },
    subjectIssuer: subjectIssuer(config),
    intervalMs: config.sync.intervalMs,
    recheckSessions: (clusterId) => gateways.recheck({ clusterId }),
    log,
    now,
  });
  parts.defer(() => loop.stop());
  return loop;
}

/** The web console, where there is one; beside its listener, for a page that listens would hold up the stop. */
async function addConsole(
  fronts: Fronts,
  serve: (name: string, at: HttpConfig, handler: RequestListener) => Promise<void>,
  parts: Parameters<typeof startConsole>[0],
): Promise<void> {
  const at = parts.config.console;
  if (!at) return;
  const webConsole = startConsole(parts);
  fronts.add(webConsole);
  await serve('web console', at, webConsole.handle);
}

/** Gives an empty database its installation. Hashing passwords goes on when it resolves: see `passwordsSet`. */
async function fillStore(store: Store, { config, installation }: AppOptions) {
  await raiseNextUid(store, config.uids.base, listHostIds());
  if (installation) await createInstallation(store, installation.lab, installation.source);
  // Hashing takes a second of other threads' time: the rest starts meanwhile, and nobody can sign in yet.
  const passwordsSet = setPasswords(store, installation?.passwords ?? new Map());
  passwordsSet.catch(() => {});
  return { passwordsSet };
}

/** What nobody who waits for the start waits for. */
function startLater(
  parts: AsyncDisposableStack,
  deps: { config: Config; store: Store; issuer: TokenIssuer; log: Logger; now(): number },
): void {
  const { config, store, issuer, log, now } = deps;
  parts.defer(announceEnds({ store, intervalMs: config.sync.intervalMs, log, now }));
  const { backup: settings, dataDir, files } = config;
  const { version } = manifest;
  parts.defer(startBackups({ settings, dataDir, version, elsewhere: () => files, log, now }));
  parts.defer(warmSoon(issuer, log));
}

/** Loads what sign-ins need after a while. Returns how to cancel that. */
function warmSoon(issuer: TokenIssuer, log: Logger): () => void {
  const warming = setTimeout(() => {
    issuer.warm().catch((error) => log.error('issuer.failed', { error }));
  }, warmAfterMs);
  return () => clearTimeout(warming);
}

/** Logs how long each write took. */
function timed(store: Store, log: Logger): Store {
  return {
    ...store,
    async write(body, flush) {
      const started = performance.now();
      const result = await inSpan('store.write', {}, () => store.write(body, flush));
      log.debug('store.written', { ms: Math.round((performance.now() - started) * 100) / 100 });
      return result;
    },
  };
}
