/** Three servers of the real program on one database, each with a data directory of its own; one that ends starts again. */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import type { Scratch } from '../../bench/scratch.ts';
import { answers, root } from '../../bench/service.ts';
import { type Addresses, ports, proxyPorts, readExample } from './addresses.ts';
import type { LabIssuer } from './issuer.ts';
import { signal, urlOf } from './postgres.ts';

export interface Server {
  readonly name: string;
  readonly host: string;
  /** Of the service; undefined while it does not run. */
  readonly pid: number | undefined;
  readonly gateways: number[];
  /** Starts it and resolves when both APIs are ready and the gateway greets. */
  start(limitMs?: number): Promise<void>;
  /** Ends the service and its gateway, as when the host loses power; it starts again after so long. */
  loseHost(ms: number): Promise<void>;
  /** Resolves when it is ready. */
  ready(limitMs?: number, signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

interface ServersOptions {
  addresses: Addresses;
  lab: Lab;
  issuer: LabIssuer;
  /** The directory that the lab's files of keys are in. */
  secretsDir: string;
  /** Where logs stay; with all else, where it is left out. */
  logs?: string | undefined;
}

/** Less than systemd's, which is not what is measured. */
const restartMs = 500;

/** Writes their configurations; none runs yet. */
export function configureServers(
  scratch: Scratch,
  { addresses, lab, issuer, secretsDir, logs }: ServersOptions,
): Server[] {
  const folder = scratch.folder('servers');
  const secretsKeyFile = join(folder, 'secrets.key');
  const databaseFile = join(folder, 'database.url');
  writeFileSync(secretsKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  writeFileSync(databaseFile, `${urlOf(addresses.databases, 'andromeda')}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'lab.yaml'), JSON.stringify(lab));
  return addresses.servers.map((host, index) => {
    const example = parse(
      addresses.adapt(readExample('andromeda.yaml')).replaceAll(addresses.servers[0], host),
    );
    const dataDir = join(folder, `data-${index + 1}`);
    issuer.giveTo(dataDir);
    const settings = {
      ...example,
      dataDir,
      ...{ databaseFile, secretsKeyFile },
      platform: { ...example.platform, url: addresses.urls.platform },
      business: { ...example.business, url: addresses.urls.business },
      gateway: { ...example.gateway, hostname: addresses.proxy, port: proxyPorts.ssh },
      identity: { embedded: { ...example.identity.embedded, url: issuer.url } },
      console: { ...example.console, url: addresses.urls.console },
      clusters: { secretsDir },
      sync: { intervalSeconds: 5 },
      // Simulated login nodes of others on this machine end every process of a number that is theirs as well.
      uids: { base: 45_000 },
      seed: join(folder, 'lab.yaml'),
    };
    const file = join(folder, `server-${index + 1}.yaml`);
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(settings));
    const logFile = join(logs ?? folder, `server-${index + 1}.log`);
    return createServer(scratch, {
      ...{ name: `server ${index + 1}`, host, file, logFile },
      dataDir,
    });
  });
}

interface ServerFiles {
  name: string;
  host: string;
  file: string;
  logFile: string;
  dataDir: string;
}

function createServer(scratch: Scratch, { name, host, file, logFile, dataDir }: ServerFiles): Server {
  let child: ChildProcess | undefined;
  let pauseMs = restartMs;
  let isStopped = true;

  function launch(): void {
    const command = [join(root, 'scripts/andromeda'), 'serve', '--config', file];
    const started = scratch.start(command, { stdio: ['ignore', 'ignore', 'pipe'] });
    child = started;
    started.stderr?.on('data', (data: Buffer) => appendFileSync(logFile, data));
    started.once('exit', (status, by) => {
      child = undefined;
      if (isStopped) return;
      appendFileSync(logFile, `${name} ended with ${status ?? by}\n`);
      const pause = pauseMs;
      pauseMs = restartMs;
      setTimeout(() => isStopped || launch(), pause);
    });
  }

  const server: Server = {
    name,
    host,
    get pid() {
      return child?.pid;
    },
    get gateways() {
      const list = join(dataDir, 'run/gateways.json');
      if (!existsSync(list)) return [];
      const { processes } = JSON.parse(readFileSync(list, 'utf8')) as { processes: { pid: number }[] };
      return processes.map(({ pid }) => pid).filter((pid) => existsSync(`/proc/${pid}`));
    },
    async start(limitMs) {
      isStopped = false;
      launch();
      // One that ends at its start would only do so again.
      const ended = new AbortController();
      child?.once('exit', () => ended.abort());
      await server.ready(limitMs, ended.signal);
      if (ended.signal.aborted) throw new Error(`${name} ended; its log ends with: ${tail(logFile)}`);
    },
    async loseHost(ms) {
      pauseMs = ms;
      const { pid, gateways } = server;
      // The group, so that nothing that it started goes on.
      if (pid !== undefined) signal(-pid, 'SIGKILL');
      for (const gateway of gateways) signal(gateway, 'SIGKILL');
      while (child?.pid === pid && pid !== undefined) await sleep(5);
    },
    async ready(limitMs = 120_000, signal) {
      const request = 'GET /readyz HTTP/1.1\r\nHost: ready\r\nConnection: close\r\n\r\n';
      const limits = { patience: limitMs, host, ...(signal && { signal }) };
      await Promise.all([
        answers(ports.platform, /^HTTP\/1\.1 200 /, request, limits),
        answers(ports.business, /^HTTP\/1\.1 200 /, request, limits),
        answers(ports.gateway, /^SSH-2\.0-/, '', limits),
      ]).catch((error: Error) => {
        throw new Error(`${name}: ${error.message}; its log ends with: ${tail(logFile)}`);
      });
    },
    async stop() {
      isStopped = true;
      const { gateways } = server;
      if (child) await scratch.end(child);
      for (const gateway of gateways) signal(gateway, 'SIGKILL');
    },
  };
  return server;
}

function tail(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').slice(-1_500) : '';
}
