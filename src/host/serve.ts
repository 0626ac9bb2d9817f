/** `andromeda serve`: starts the service from a file or as the demonstration, and stops it on a signal. */
import { resolve } from 'node:path';
import { type App, startApp } from '../app/index.ts';
import { demoConfig, readConfig } from '../config/index.ts';
import { readLab } from '../config/lab-file.ts';
import { DomainError } from '../domain/error.ts';
import { createLogger } from '../lib/log.ts';

export interface ServeOptions {
  config?: string;
  demo: boolean;
  data?: string;
}

/** Beside the time that open SSH sessions are given. */
const stopLimitMs = 1_600;

/** Serves until SIGINT or SIGTERM. Resolves to the exit status: 0 when stopped, 1 when it could not start. */
export async function serve(options: ServeOptions): Promise<number> {
  // Signals that come while it starts must count as well.
  const signal = nextSignal();
  try {
    const app = options.demo
      ? await serveDemo(options.data ?? './data')
      : await serveFile(options.config ?? '');
    const name = await signal;
    process.stderr.write(`\nStopping (${name})…\n`);
    // Everything on disk is whole at any instant, so a part that hangs is left behind rather than waited for.
    setTimeout(() => {
      process.stderr.write('Some parts did not stop in time; left them.\n');
      process.exit(1);
    }, stopLimitMs + app.drainMs).unref();
    await app[Symbol.asyncDispose]();
    process.stderr.write('Stopped.\n');
    return 0;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    process.stderr.write(`andromeda: ${error.message}\n`);
    return 1;
  }
}

async function serveFile(file: string): Promise<App> {
  const config = readConfig(file);
  const log = createLogger(config.log.level);
  const installation =
    config.seed === undefined ? undefined : { lab: readLab(config.seed), source: config.seed };
  const app = await startApp({ config, log, installation });
  log.info('serve.ready', {
    platform: config.platform.url,
    business: config.business.url,
    issuer: app.issuerUrl,
    gateway: `${config.gateway.listen.host}:${config.gateway.listen.port}`,
    hostKey: app.gatewayFingerprint,
    fastCiphers: app.fastCiphers,
    node: process.version,
  });
  return app;
}

async function serveDemo(data: string): Promise<App> {
  const { demoInstallation, demoPage } = await import('./demo.ts');
  const config = demoConfig(resolve(data));
  const installation = demoInstallation(config.dataDir);
  // Warnings only: the page is what people came for, and it must not scroll away.
  const app = await startApp({ config, log: createLogger('warn'), installation });
  process.stdout.write(await demoPage(app, config, installation.passwords));
  return app;
}

function nextSignal(): Promise<string> {
  return new Promise((done) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      process.on(name, () => {
        done(name);
        // Whoever asks twice does not want to wait for anything.
        process.on(name, () => process.exit(1));
      });
    }
  });
}
