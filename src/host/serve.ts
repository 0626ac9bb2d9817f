/** `andromeda serve`: starts the service from a file or as the demonstration; stops or reloads it on a signal. */
import { resolve } from 'node:path';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { type App, startApp } from '../app/index.ts';
import { demoConfig, readConfig } from '../config/index.ts';
import { readLab } from '../config/lab-file.ts';
import { DomainError, StoppedError } from '../domain/error.ts';
import { createLogger } from '../lib/log.ts';
import { statusOf } from './exit-status.ts';
import { loggedMessages, logNodeMessages, type Messages, plainMessages } from './messages.ts';
import { refusalToReload, replaceProcess } from './reload.ts';
import { listenForSignals, type Signals } from './signals.ts';
import { type Supervision, startSupervision } from './supervision.ts';

export interface ServeOptions {
  config?: string;
  demo: boolean;
  data?: string;
}

/** Beside the time that open SSH sessions and requests of a proxy are given. */
const stopLimitMs = 1_600;

/** Serves until SIGINT or SIGTERM. Resolves to the exit status: 0 when stopped, else one of `exit-status.ts`. */
export async function serve(options: ServeOptions, signals = listenForSignals()): Promise<number> {
  let messages = options.demo ? plainMessages : loggedMessages(createLogger('info'));
  try {
    const served = options.demo
      ? await serveDemo(options.data ?? './data')
      : await serveFile(options.config ?? '', signals);
    messages = served.messages;
    const name = await lastSignal(signals, options, served);
    if (name === 'SIGHUP') await reload(served, signals);
    else await stop(served, name);
    return 0;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const isStopped =
      error instanceof StoppedError || (signals.isStopping && error.code === 'service_unavailable');
    const status = isStopped ? 0 : statusOf(error);
    if (isStopped) messages.stopped(error.message);
    else messages.failed(error, status);
    // What was said may be on its way into a pipe that nobody reads.
    setTimeout(() => process.exit(status), stopLimitMs).unref();
    return status;
  }
}

/** Waits for the signal that ends this program: to stop, or to reload what can be reloaded. */
async function lastSignal(
  signals: Signals,
  { config }: ServeOptions,
  { app, messages }: Served,
): Promise<NodeJS.Signals> {
  for (;;) {
    const name = await signals.next();
    // The terminal it was started in is closed: that ends it, as it ends other programs.
    const isHangUp = config === undefined || process.stderr.isTTY;
    if (name !== 'SIGHUP' || isHangUp) return name === 'SIGHUP' ? 'SIGTERM' : name;
    // A new program that hangs must not hold up a stop.
    const refusal = await Promise.race([refusalToReload(config, app.store.server), signals.stopping]);
    if (signals.isStopping) continue;
    if (refusal === undefined) return name;
    messages.notReloaded(refusal);
  }
}

async function stop({ app, messages, supervision }: Served, name: string): Promise<void> {
  messages.stopping(name);
  supervision?.stopping();
  // Everything on disk is whole at any instant, so a part that hangs is left behind rather than waited for.
  const late = setTimeout(
    () => {
      messages.leaving();
      process.exit(1);
    },
    stopLimitMs + app.lingerMs + app.drainMs,
  ).unref();
  await app[Symbol.asyncDispose]();
  clearTimeout(late);
  messages.stopped();
  // A reload that was under way may still wait for the database, or for a program that hangs.
  setTimeout(() => process.exit(0), stopLimitMs).unref();
}

/** Returns only where it was asked to stop meanwhile. */
async function reload({ app, messages, supervision }: Served, signals: Signals): Promise<void> {
  messages.reloading();
  supervision?.handingOver();
  const endGateways = await Promise.race([app.leave(), sleep(stopLimitMs + app.lingerMs)]);
  // A signal that has arrived is seen only when the event loop has looked for it.
  await sleep(1);
  await setImmediate();
  if (!signals.isStopping) return replaceProcess();
  if (!endGateways) {
    messages.leaving();
    process.exit(1);
  }
  await endGateways();
  messages.stopped();
}

/** What runs, and where its messages go. */
interface Served {
  app: App;
  messages: Messages;
  supervision?: Supervision;
}

async function serveFile(file: string, { stopping }: Signals): Promise<Served> {
  const config = readConfig(file);
  const log = createLogger(config.log.level);
  logNodeMessages(log);
  const installation =
    config.seed === undefined ? undefined : { lab: readLab(config.seed), source: config.seed };
  const app = await startApp({ config, log, installation, stopping });
  log.info('serve.ready', {
    platform: config.platform.url,
    business: config.business.url,
    issuer: app.issuerUrl,
    gateway: `${config.gateway.listen.host}:${config.gateway.listen.port}`,
    hostKey: app.gatewayFingerprint,
    fastCiphers: app.fastCiphers,
    node: process.version,
  });
  return { app, messages: loggedMessages(log), supervision: startSupervision(app.store, log) };
}

async function serveDemo(data: string): Promise<Served> {
  const { demoInstallation, demoPage } = await import('./demo.ts');
  const config = demoConfig(resolve(data));
  const installation = demoInstallation(config.dataDir);
  // Warnings only: the page is what people came for, and it must not scroll away.
  const app = await startApp({ config, log: createLogger('warn'), installation });
  process.stdout.write(await demoPage(app, config, installation.passwords));
  return { app, messages: plainMessages };
}
