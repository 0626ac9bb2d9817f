/** The service as people run it: `scripts/andromeda serve` in a process of its own, on free ports. */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { limit } from '../../test/support/limit.ts';
import { freePorts } from '../../test/support/ports.ts';
import type { Scratch } from './scratch.ts';

export const root = join(import.meta.dirname, '..', '..');

const patienceMs = limit(30_000);

export interface Service {
  command: string[];
  /** Where the database is once it serves. */
  databaseFile: string;
  ports: { platform: number; business: number; gateway: number };
}

interface ServiceOptions {
  lab: object;
  issuer?: string;
  /** The URL of a PostgreSQL; left out: SQLite. */
  database?: string | undefined;
  /** Where the web console is, and the client that it is at the issuer. */
  console?: { url: string; clientId: string; clientSecretFile: string };
}

/** Writes a configuration into `dir` and says how to run it. `issuer` left out: the embedded one. */
export async function configureService(
  dir: string,
  { lab, issuer, database, console: page }: ServiceOptions,
): Promise<Service> {
  const [platform = 0, business = 0, gateway = 0, embedded = 0] = await freePorts(4);
  const at = (port: number) => ({ listen: `127.0.0.1:${port}` });
  const { url: _url, ...client } = page ?? { url: '' };
  const config = {
    dataDir: './data',
    ...(database !== undefined && { database, secretsKeyFile: 'secrets.key' }),
    platform: at(platform),
    business: at(business),
    gateway: at(gateway),
    identity:
      issuer === undefined ? { embedded: at(embedded) } : { issuer, ...(page && { console: client }) },
    ...(page && { console: { listen: new URL(page.url).host, url: page.url } }),
    sync: { intervalSeconds: 15 },
    log: { level: 'warn' },
    seed: './lab.yaml',
  };
  writeFileSync(join(dir, 'secrets.key'), randomBytes(32).toString('base64'), { mode: 0o600 });
  // JSON is YAML.
  writeFileSync(join(dir, 'andromeda.yaml'), JSON.stringify(config));
  writeFileSync(join(dir, 'lab.yaml'), JSON.stringify(lab));
  return {
    command: [join(root, 'scripts/andromeda'), 'serve', '--config', join(dir, 'andromeda.yaml')],
    databaseFile: join(dir, 'data', 'andromeda.db'),
    ports: { platform, business, gateway },
  };
}

interface StartService {
  pin?: readonly string[];
  patience?: number;
  env?: NodeJS.ProcessEnv;
}

/** Starts it and resolves when it serves; rejects with what it wrote when it ends before. `pin` goes before it. */
export async function startService(
  scratch: Scratch,
  service: Service,
  { pin = [], patience = patienceMs, env = process.env }: StartService = {},
): Promise<ChildProcess> {
  const child = scratch.start([...pin, ...service.command], { stdio: ['ignore', 'ignore', 'pipe'], env });
  let text = '';
  // Read to the end, for a full pipe would make it wait.
  child.stderr?.on('data', (data: Buffer) => {
    text = `${text}${data}`.slice(-2_000);
  });
  const ended = new AbortController();
  child.once('close', () => ended.abort());
  await serving(service, { patience, signal: ended.signal });
  if (ended.signal.aborted) throw new Error(`the service did not start: ${text.trim()}`);
  return child;
}

/** Resolves when both APIs say they are ready and the gateway greets. */
export async function serving({ ports }: Service, limits: Limits = {}): Promise<void> {
  const ready = 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  await Promise.all([
    answers(ports.platform, /^HTTP\/1\.1 200 /, ready, limits),
    answers(ports.business, /^HTTP\/1\.1 200 /, ready, limits),
    answers(ports.gateway, /^SSH-2\.0-/, '', limits),
  ]);
}

/** How long to wait, and until when it is worth waiting. */
interface Limits {
  patience?: number;
  signal?: AbortSignal;
  host?: string;
}

/** Resolves once a port answers as wanted, or waiting is of no use; rejects when the patience is over. */
export async function answers(
  port: number,
  wanted: RegExp,
  request = '',
  { patience = patienceMs, signal, host = '127.0.0.1' }: Limits = {},
): Promise<void> {
  const deadline = performance.now() + patience;
  while (!signal?.aborted && !wanted.test(await firstAnswer(host, port, request))) {
    if (performance.now() > deadline) throw new Error(`nothing answers on port ${port}`);
    await sleep(5);
  }
}

function firstAnswer(host: string, port: number, request: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => socket.write(request));
    const finish = (text: string) => {
      socket.destroy();
      resolve(text);
    };
    socket.once('data', (data) => finish(data.toString('latin1')));
    socket.once('error', () => finish(''));
    socket.once('close', () => finish(''));
    socket.setTimeout(5_000, () => finish(''));
  });
}
