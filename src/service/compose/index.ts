/**
 * The composition root: configuration → store → operations → listeners, and the same backwards to stop. Only this
 * folder sees every other; a folder gets what it needs of another as a small function.
 */
import type { RequestListener } from 'node:http';
import { Listeners } from '../../api/http/listeners.ts';
import type { Lab } from '../../domain/clusters/lab.ts';
import { defaultLimits } from '../../gateway/ssh/limits.ts';
import { fastCiphersLoad } from '../../gateway/ssh/transport/fast-ciphers.ts';
import { type Clock, createClock, logClockJumps } from '../../lib/clock.ts';
import { listHostIds } from '../../lib/host-ids.ts';
import type { Logger } from '../../lib/log.ts';
import { createTrustedProxies } from '../../lib/source-address.ts';
import { raiseNextUid } from '../../store/access/numbers.ts';
import { createInstallation } from '../../store/data-dir/lab.ts';
import { openStore } from '../../store/data-dir/open-store.ts';
import { type Store, storeForRequests } from '../../store/engine/index.ts';
import { listSlugs } from '../../store/organizations/organizations.ts';
import { hearPasses } from '../../sync/index.ts';
import { createAudit } from '../audit/index.ts';
import type { Acme } from '../certificates/index.ts';
import { checkOrganizations } from '../config/groups.ts';
import type { Config } from '../config/index.ts';
import { createDownloads } from '../downloads/index.ts';
import { type Apis, createApis } from './apis.ts';
import { openAcme, watchCertificates } from './certificates.ts';
import { startConsole } from './console.ts';
import { type Ending, Fronts } from './fronts.ts';
import { gatewayKeys, openGateway, startGateway } from './gateway.ts';
import { setPasswords, startIssuer } from './issuer.ts';
import { leaderWork } from './leader.ts';
import { watchLoginNodes } from './login-node-keys.ts';
import type { Parts, TokenIssuer } from './parts.ts';
import { joinGateways } from './peers/gateways.ts';
import { joinPeers, sharedSettings } from './peers/index.ts';
import type { Peers } from './peers/peers.ts';
import { followKeys, loadServiceKeys } from './service-keys.ts';
import { startSessionRecords } from './session-records.ts';

export interface AppOptions {
  config: Config;
  log: Logger;
  /** The content of an empty database, and its people's passwords at the embedded issuer. */
  installation?: { lab: Lab; source: string; passwords?: ReadonlyMap<string, string> } | undefined;
  /** The time of day; a test's also serves as the monotonic clock, unless it passes `uptime`. */
  now?: () => number;
  uptime?: () => number;
  /** Listeners that are open already; the caller owns them, also where the start fails. */
  listeners?: Listeners | undefined;
  /** Resolves when the start must no longer wait for a database that is away. */
  stopping?: Promise<unknown> | undefined;
}

export interface App extends AsyncDisposable {
  store: Store;
  gatewayFingerprint: string;
  issuerUrl: string;
  /** True if ssh2's native ciphers are loaded; without them the gateway is several times slower. */
  fastCiphers: boolean;
  /** The time that running requests, and then open SSH sessions, get when it stops. */
  stopMs: number;
  /**
   * Stops all but the gateway's processes, which continue for the service that follows; with `reload`, so do its
   * listeners. Resolves to a function that ends the processes where none follows.
   */
  leave(how: 'restart' | 'reload'): Promise<() => Promise<void>>;
}

/** Delay after the start until code that only sign-ins need is loaded. */
const warmAfterMs = 100;

/** Starts every part; resolves when all of them serve. Throws a `DomainError` with a sentence where one cannot. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, listeners = new Listeners() } = options;
  const clock = createClock(options);
  const { metrics, log } = await watchLog(options, clock.now);
  const parts = new AsyncDisposableStack();
  const fronts = new Fronts(config, listeners);
  const ending: { how: Ending } = { how: 'stop' };
  try {
    const { common, passwordsSet } = await openBase(parts, options, { clock, log });
    const asked = { ...common, store: storeForRequests(common.store) };
    const acme = await openAcme(config, common);
    parts.defer(() => acme?.stop());
    const serve = fronts.serveWith({ ...common, acme });
    // First of all: the gateway's process needs a moment to start.
    const records = startSessionRecords(common.store, log);
    const gateway = await openGateway(config, { ...common, records, gatewayKeys: gatewayKeys(common.keys) });
    fronts.gateway = gateway;
    const issuer = await startIssuer(config, { ...asked, clock });
    if (issuer.handle) await serve('embedded issuer', config.identity.embedded, issuer.handle);
    const audit = createAudit(config.audit, { ...config, ...common, keys: () => common.keys.of('audit') });
    let stopLeading: (() => Promise<void>) | undefined;
    parts.defer(() => stopLeading?.());
    parts.defer(() => records.stop());
    const gatewayStarted = startGateway(gateway, common);
    gatewayStarted.catch(() => {});
    const gates = { gateway, gateways: joinGateways(parts, { ...common, gateway }) };
    const loginNodeKeys = watchLoginNodes(common);
    parts.defer(() => loginNodeKeys.stop());
    const apis = createApis({ ...asked, ...gates, loginNodeKeys, issuer, audit, acme, fronts });
    await serveHttp(serve, config, { ...apis, acme, metrics: metrics?.handler(gateway) });
    await addConsole(fronts, serve, { ...asked, ...clock, apis, issuer });
    acme?.begin();
    await gatewayStarted;
    parts.defer(useKeys(common, { gateway, issuer }));
    // Last to start, when nothing else can fail. It stops after the fronts, so that people read that the server
    // stops, and not that their login node did, and after everything that writes entries of the trail.
    stopLeading = common.peers.whileLeading(leaderWork({ ...common, ...gates, audit }));
    parts.defer(() => fronts.stop(ending.how));
    parts.defer(warmSoon(issuer, common.log));
    await passwordsSet;
    return appOf(parts.move(), { ...common, ...gates, issuer, ending });
  } catch (error) {
    // Sessions from before must not end because this start fails.
    ending.how = 'failed';
    await fronts.stop('failed');
    await parts.disposeAsync();
    if (!options.listeners) await listeners.stop(0);
    throw error;
  }
}

/** Opens what every other part needs: the database, the other servers, the service's own keys. */
async function openBase(
  parts: AsyncDisposableStack,
  options: AppOptions,
  { clock, log }: { clock: Clock; log: Logger },
) {
  const { config } = options;
  parts.defer(watchCertificates(config, log, clock.now));
  const { store, peers } = await openShared(parts, { ...options, clock, log });
  parts.defer(logClockJumps(clock, log));
  const { passwordsSet } = await fillStore(store, options);
  const announced = hearPasses(store);
  parts.defer(() => announced.stop());
  const sync: Parts['sync'] = { announced };
  const proxies = createTrustedProxies(config.trustedProxies);
  const { dataDir, platform } = config;
  const downloads = createDownloads({ dataDir, platformUrl: platform.url, proxies, log });
  const keys = await loadServiceKeys(config, { store, log, now: store.lapses.now });
  const common = { config, keys, store, peers, log, now: clock.now, sync, proxies, downloads };
  return { common, passwordsSet };
}

type Common = Awaited<ReturnType<typeof openBase>>['common'];
type Serve = ReturnType<Fronts['serveWith']>;

async function serveHttp(
  serve: Serve,
  { business, platform, metrics, acme }: Config,
  handlers: Apis & { acme: Acme | undefined; metrics: RequestListener | undefined },
): Promise<void> {
  await serve('Business API', business, handlers.business);
  await serve('Platform API', platform, handlers.platform);
  if (metrics && handlers.metrics) await serve('metrics', metrics, handlers.metrics);
  if (acme && handlers.acme) await serve('ACME challenges', { listen: acme.listen }, handlers.acme.handler);
}

function appOf(
  started: AsyncDisposableStack,
  parts: Pick<Parts, 'config' | 'keys' | 'store' | 'gateway' | 'issuer'> & { ending: { how: Ending } },
): App {
  const { server, gateway } = parts.config;
  return {
    store: parts.store,
    gatewayFingerprint: parts.keys.of('host').used.fingerprint,
    issuerUrl: parts.issuer.url,
    fastCiphers: fastCiphersLoad(),
    stopMs: server.drainMs + (gateway.limits.drainMs ?? defaultLimits.drainMs),
    async leave(how) {
      parts.ending.how = how;
      await started.disposeAsync();
      return () => parts.gateway.endLeft();
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** The log for the parts: events in it are counted for metrics. */
async function watchLog({ config, log }: AppOptions, now: () => number) {
  const metrics = config.metrics && (await import('./metrics/metrics.ts')).createMetrics(now, config);
  return { metrics, log: metrics?.watch(log) ?? log };
}

/** The database, and this server's membership among those that share it. Last to stop. */
async function openShared(
  parts: AsyncDisposableStack,
  { config, clock, log, stopping }: Pick<AppOptions, 'config' | 'log' | 'stopping'> & { clock: Clock },
): Promise<{ store: Store; peers: Peers }> {
  const { database, secrets, access } = config;
  const store = timed(
    await openStore(config.dataDir, { clock, access, database, secrets, log, stopping }),
    log,
  );
  parts.defer(() => store.close());
  const peers = await joinPeers(config, store, log, {
    settings: sharedSettings(config),
    now: clock.now,
  });
  parts.defer(() => peers.stop());
  return { store, peers };
}

/** Passes changed keys to the gateway and the issuer. Returns a function that stops. */
function useKeys(
  { keys, ...common }: Common,
  { gateway, issuer }: Pick<Parts, 'gateway' | 'issuer'>,
): () => Promise<void> {
  return followKeys(keys, common, () => {
    gateway.useKeys(gatewayKeys(keys));
    issuer.refreshKeys?.();
  });
}

/** The web console, where there is one. It stops together with its listener: a page with an open event stream delays the stop. */
async function addConsole(
  fronts: Fronts,
  serve: Serve,
  parts: Parameters<typeof startConsole>[0],
): Promise<void> {
  const at = parts.config.console;
  if (!at) return;
  const webConsole = startConsole(parts);
  fronts.add(webConsole);
  await serve('web console', at, webConsole.handle);
}

/** Gives an empty database its installation. Hashing of passwords may continue when it resolves: see `passwordsSet`. */
async function fillStore(store: Store, { config, installation }: AppOptions) {
  await raiseNextUid(store, config.uids.base, listHostIds());
  if (installation) await createInstallation(store, installation.lab, installation.source);
  const { groups } = config.identity;
  if (groups) checkOrganizations(groups, await listSlugs(store.read));
  // Hashing takes a second on other threads: the rest starts meanwhile, before anyone can sign in.
  const passwordsSet = setPasswords(store, installation?.passwords ?? new Map());
  passwordsSet.catch(() => {});
  return { passwordsSet };
}

/** Loads the code for sign-ins after a delay. Returns a function that cancels that. */
function warmSoon(issuer: TokenIssuer, log: Logger): () => void {
  const warming = setTimeout(() => {
    issuer.warm().catch((error) => log.error('issuer.failed', { error }));
  }, warmAfterMs);
  return () => clearTimeout(warming);
}

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
