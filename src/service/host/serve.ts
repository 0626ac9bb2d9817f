/** `andromeda serve`: starts the service from a file or as the demonstration; stops or reloads it on a signal. */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Listeners } from '../../api/http/listeners.ts';
import { DomainError, StoppedError } from '../../domain/error.ts';
import { messageOf } from '../../lib/error-message.ts';
import { createLogger, type Logger } from '../../lib/log.ts';
import { type App, startApp } from '../compose/index.ts';
import { type Config, demoConfig, readConfig } from '../config/index.ts';
import { readLab } from '../config/lab-file.ts';
import { loggedMessages, logNodeMessages, type Messages, plainMessages, statusOf } from './messages.ts';
import { type Askers, listenForAskers, nextConfig } from './reload.ts';
import { listenForSignals, type Signals } from './signals.ts';
import { type Supervision, startSupervision } from './unit/supervision.ts';

export interface ServeOptions {
  config?: string;
  demo: boolean;
  data?: string;
}

/**
 * Added to the time for open SSH sessions and requests, for a slow disk or a busy machine. A part that is still open
 * then at a reload could not be opened again. The unit allows as much on top (`service-unit.ts`).
 */
const leaveLimitMs = 25_000;
/** Limit on the wait for output in a pipe without a reader. */
const outputLimitMs = 1_600;

interface Running {
  app: App;
  config: Config;
  log: Logger;
  messages: Messages;
}

interface Host {
  file: string;
  signals: Signals;
  listeners: Listeners;
}

/** Serves until SIGINT, SIGTERM or SIGUSR2. Resolves to the exit status: 0 when stopped, else one of `messages.ts`. */
export async function serve(options: ServeOptions, signals = listenForSignals()): Promise<number> {
  let messages = options.demo ? plainMessages : loggedMessages(createLogger('info'));
  try {
    if (options.demo) {
      const served = await serveDemo(options.data ?? './data');
      await stop(served, await signals.next());
      return 0;
    }
    const host = { file: options.config ?? '', signals, listeners: new Listeners() };
    const config = readConfig(host.file);
    const first = await start(config, host);
    messages = first.messages;
    await serveOn(first, host);
    return 0;
  } catch (error) {
    const isAway = error instanceof DomainError && error.code === 'service_unavailable';
    const isStopped = error instanceof StoppedError || (signals.stop !== undefined && isAway);
    const status = isStopped ? 0 : statusOf(error);
    if (isStopped) messages.stopped(messageOf(error));
    else messages.failed(error, status, options.config);
    setTimeout(() => process.exit(status), outputLimitMs).unref();
    return status;
  }
}

/** Serves, with other settings after each reload, until a signal to stop. */
async function serveOn(first: Running, host: Host): Promise<void> {
  const { signals } = host;
  let served: Running | undefined = first;
  try {
    const supervision = startSupervision(() => served?.app.store, first.log);
    const askers = listenForAskers(first.config.dataDir, signals.reload, first.messages.notReloaded);
    for (;;) {
      const name = await signals.next();
      if (signals.stop) return await stop(served, name, supervision);
      const before = served;
      const answer = askers.take();
      served = undefined;
      served = await reload(before, host, answer);
    }
  } catch (error) {
    // No loop is left that would obey a signal, so nothing may keep running.
    if (served) await endApp(served);
    throw error;
  }
}

async function stop(served: Running, signal: NodeJS.Signals, supervision?: Supervision): Promise<void> {
  served.messages.stopping(signal);
  supervision?.stopping();
  await endApp(served, signal);
  served.messages.stopped();
  setTimeout(() => process.exit(0), outputLimitMs).unref();
}

async function endApp({ app, messages }: Running, signal?: NodeJS.Signals): Promise<void> {
  // Everything on disk is consistent at any instant, so a part that hangs is abandoned rather than waited for.
  const late = setTimeout(() => {
    messages.leaving();
    process.exit(1);
  }, leaveLimitMs + app.stopMs).unref();
  if (signal === 'SIGUSR2') await app.leave('restart');
  else await app[Symbol.asyncDispose]();
  clearTimeout(late);
}

/**
 * Takes up the settings on disk; where that fails, the service continues as before, and `answer` gets the reason.
 * Resolves to what serves then.
 */
async function reload(before: Running, host: Host, answer: ReturnType<Askers['take']>): Promise<Running> {
  const { signals, listeners } = host;
  const { app, config, messages } = before;
  let next: Config | undefined;
  try {
    // A check that hangs must not delay a stop.
    next = await Promise.race([
      nextConfig(host.file, { config, server: app.store.server, listeners }),
      signals.stopping.then(() => undefined),
    ]);
  } catch (error) {
    messages.notReloaded(messageOf(error));
    answer(messageOf(error));
  }
  if (!next || signals.stop) return before;
  messages.reloading();
  const endGateways = await Promise.race([app.leave('reload'), sleep(leaveLimitMs + app.stopMs)]);
  if (!endGateways) {
    messages.leaving();
    process.exit(1);
  }
  try {
    const after = await start(next, host).catch(async (error: unknown) => {
      messages.notReloaded(messageOf(error));
      const again = await start(config, host);
      answer(messageOf(error));
      return again;
    });
    answer(undefined);
    return after;
  } catch (error) {
    if (signals.stop && signals.stop !== 'SIGUSR2') await endGateways();
    throw error;
  } finally {
    await listeners.closeUnused();
  }
}

async function start(config: Config, { signals, listeners }: Host): Promise<Running> {
  const log = createLogger(config.log.level);
  logNodeMessages(log);
  const installation =
    config.seed === undefined ? undefined : { lab: readLab(config.seed), source: config.seed };
  const app = await startApp({ config, log, installation, listeners, stopping: signals.stopping });
  log.info('serve.ready', {
    platform: config.platform.url,
    business: config.business.url,
    issuer: app.issuerUrl,
    gateway: `${config.gateway.listen.host}:${config.gateway.listen.port}`,
    hostKey: app.gatewayFingerprint,
    fastCiphers: app.fastCiphers,
    node: process.version,
  });
  return { app, config, log, messages: loggedMessages(log) };
}

async function serveDemo(data: string): Promise<Running> {
  const { demoInstallation, demoPage } = await import('./demo.ts');
  const config = demoConfig(resolve(data));
  const installation = demoInstallation(config.dataDir);
  // Warnings only: the page is what people came for, and it must not scroll away.
  const log = createLogger('warn');
  const app = await startApp({ config, log, installation });
  process.stdout.write(await demoPage(app, config, installation.passwords));
  return { app, config, log, messages: plainMessages };
}
