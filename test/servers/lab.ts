/**
 * Several servers, each the real program with a data directory of its own, on one PostgreSQL; a real sshd as the login node of
 * their cluster, which nothing but this file reports on; and a person with a key.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { findManifest } from '../../src/store/access/access-lists.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { updateRows } from '../../src/store/engine/rows.ts';
import { startSshd, whyNot } from '../gateway/lab.ts';
import { gatewaysOf } from '../gateway/process/lab.ts';
import { alpha, type Call, eventually, type Reply } from '../support/app.ts';
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts';
import { freePorts } from '../support/ports.ts';
import { createPostgres, missingPostgres, type TestPostgres } from '../support/postgres-server.ts';
import { program } from '../support/program.ts';
import { loadIssuerKeys, loadSshKeyOf } from '../support/service-keys.ts';
import { slurmReport } from '../support/store.ts';

/** For `test(…, { skip: noServers })`. */
export const noServers: string | false = missingPostgres() ?? whyNot;

export interface RunningServer {
  name: string;
  pid: number;
  gatewayPort: number;
  businessUrl: string;
  issuerListen: string;
  consoleListen: string;
  log(): string;
  events(name: string): Record<string, unknown>[];
  business(path: string, call?: Call): Promise<Reply>;
  write(path: string, call: Call & { reason?: string }): Promise<Reply>;
  /** Ends the service; its gateway processes live on, unless they are ended too. */
  kill(signal: NodeJS.Signals, which?: 'service' | 'all'): Promise<void>;
}

export interface ServersLab extends AsyncDisposable {
  dir: string;
  postgres: TestPostgres;
  store: Store;
  issuer: TestIssuer;
  serve(name: string): Promise<RunningServer>;
  /** Has the cluster report that it has what it should, so that people get in. */
  report(): Promise<void>;
  /** A session of Bob's through a server, open until it is ended. `said` resolves with its first output. */
  ssh(server: RunningServer, command?: string): OpenSsh;
  /** Registers Bob's key and waits until it is let in. Resolves to its ID. */
  addKey(server: RunningServer): Promise<string>;
}

export interface OpenSsh {
  child: ChildProcess;
  said: Promise<string>;
  /** What it has said so far. */
  out(): string;
  ended: Promise<{ status: number | null; out: string; err: string }>;
}

export interface LabOptions {
  /** Of each server. */
  gateway?: object | ((name: string) => object);
  /** Of every server, such as of a console and an embedded issuer behind a front. */
  config?: (server: { issuerListen: string; consoleListen: string }) => object;
}

const member = (name: string, role: string) => ({
  email: `${name}@physics.example`,
  role,
  username: name,
  ...(role === 'member' && { permissions: ['clusters.read', 'clusters.ssh'] }),
});

export async function openServersLab(options: LabOptions = {}): Promise<ServersLab> {
  const dir = mkdtempSync(join(tmpdir(), 'andromeda-servers-'));
  await using parts = new AsyncDisposableStack();
  parts.defer(() => rmSync(dir, { recursive: true, force: true }));
  const postgres = parts.use(await createPostgres());
  const issuer = parts.use(await startTestIssuer(Date.now));
  const [sshdPort = 0] = await freePorts(1);
  const newKey = (name: string) => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', join(dir, name)]);
    return readFileSync(join(dir, `${name}.pub`), 'utf8').trim();
  };
  const [nodeKey = '', userKey = ''] = ['node', 'user', 'manage'].map(newKey);
  const keys = await makeKeys(dir);
  writeFileSync(join(dir, 'secrets-key'), `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  writeFileSync(join(dir, 'authorized'), `${keys.client}\n`);
  writeLab(dir, { port: sshdPort, hostKey: nodeKey });
  const sshd = startSshd(dir, sshdPort, join(dir, 'node'));
  parts.defer(() => void sshd.kill());
  const servers: RunningServer[] = [];
  const children = new Set<ChildProcess>();
  parts.defer(async () => {
    for (const child of children) child.kill('SIGKILL');
    for (const server of servers) await server.kill('SIGKILL', 'all');
  });
  mkdirSync(join(dir, 'test'));
  let store: Store | undefined;
  parts.defer(() => store?.close());
  const loginNode = { name: 'login1', host: '127.0.0.1', port: sshdPort, hostKey: nodeKey, up: true };
  // Access rests on reports of the last minutes, and a busy machine takes its time for a test.
  let reporting: Promise<void> | undefined;
  let hasReported = false;
  const reports = setInterval(() => {
    if (!hasReported || reporting) return;
    reporting = lab
      .report()
      .catch(() => {})
      .finally(() => {
        reporting = undefined;
      });
  }, 5_000);
  parts.defer(async () => {
    clearInterval(reports);
    await reporting;
  });
  const opened = parts.move();
  const lab: ServersLab = {
    ...{ dir, postgres, issuer },
    get store() {
      if (!store) throw new Error('no server has made the database yet');
      return store;
    },
    async serve(name) {
      const server = await startServer({ dir, name, url: postgres.url(), issuer, options });
      servers.push(server);
      writeFileSync(
        join(dir, 'known_hosts'),
        servers.map(({ gatewayPort }) => `[127.0.0.1]:${gatewayPort} ${keys.host}\n`).join(''),
      );
      if (!store) {
        store = await openStore(join(dir, 'test'), { database: postgres.url() });
        await prepareCluster(store);
      }
      return server;
    },
    async report() {
      const manifest = await eventually(
        () => findManifest(lab.store, alpha),
        (found) => found !== undefined,
      );
      if (!manifest) throw new Error('no list was accepted');
      const { generation: manifestGeneration, desiredGeneration, listVersion } = manifest;
      const report = { manifestGeneration, desiredGeneration, listVersion, loginNodes: [loginNode] };
      await recordSlurmReport(lab.store, alpha, slurmReport(report));
      hasReported = true;
    },
    ssh: (server, command = 'echo up; cat') => startSsh(dir, children, server.gatewayPort, command),
    async addKey(server) {
      const body = { public_key: userKey };
      const { body: added } = await server.write('/me/ssh-keys', { as: 'bob', body });
      await eventually(
        async () => {
          await lab.report();
          return ssh(dir, children, server.gatewayPort, 'true');
        },
        ({ status }) => status === 0,
      );
      return added.ssh_key.id;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  return lab;
}

/** The same keys for every server, as an operator would put them there. */
async function makeKeys(dir: string): Promise<{ host: string; client: string }> {
  const data = join(dir, 'keys-of-all');
  mkdirSync(join(data, 'keys'), { recursive: true, mode: 0o700 });
  await loadIssuerKeys(data);
  return { host: loadSshKeyOf(data, 'host'), client: loadSshKeyOf(data, 'client') };
}

function writeLab(dir: string, at: { port: number; hostKey: string }): void {
  const host = { host: '127.0.0.1', ...at };
  const lab = {
    users: [{ email: 'root@physics.example', name: 'Root', staff: ['staff.operate'] }],
    organizations: [
      { slug: 'physics', name: 'Physics', members: [member('ada', 'owner'), member('bob', 'member')] },
    ],
    clusters: [
      {
        ...{ name: 'alpha', id: alpha, organization: 'physics', scheduler: 'sunk' },
        slurm: {
          login: [{ name: 'login1', ...host }],
          controller: host,
          // sshd knows no such key: nobody but this test says how the cluster is.
          manage: { user: 'root', identityFile: join(dir, 'manage') },
        },
      },
    ],
  };
  writeFileSync(join(dir, 'lab.yaml'), stringify(lab));
}

/** sshd lets in root and nobody else of ours: Bob is called so there. */
async function prepareCluster(store: Store): Promise<void> {
  await store.write(async ({ db }) => {
    await db.updateTable('clusters').set({ state: 'active' }).where('id', '=', alpha).execute();
    await updateRows(db, 'organization_usernames', { username: 'bob' }, { username: 'root' });
  });
}

async function startServer(about: {
  dir: string;
  name: string;
  url: string;
  issuer: TestIssuer;
  options: LabOptions;
}): Promise<RunningServer> {
  const { dir, name, url, issuer, options } = about;
  const own = join(dir, name);
  const dataDir = join(own, 'data');
  cpSync(join(dir, 'keys-of-all'), dataDir, { recursive: true, force: false, preserveTimestamps: true });
  const ports = await freePorts(5);
  const [platform = '', business = '', gateway = '', issuerListen = '', consoleListen = ''] = ports.map(
    (port) => `127.0.0.1:${port}`,
  );
  const configFile = join(own, 'andromeda.yaml');
  const settings = {
    ...{ dataDir, database: url, secretsKeyFile: join(dir, 'secrets-key') },
    ...{ seed: join(dir, 'lab.yaml'), server: { name } },
    platform: { listen: platform },
    business: { listen: business },
    gateway: {
      ...{ listen: gateway, port: ports[2] },
      ...(typeof options.gateway === 'function' ? options.gateway(name) : options.gateway),
    },
    identity: { issuer: issuer.url },
    sync: { intervalSeconds: 5 },
    ...options.config?.({ issuerListen, consoleListen }),
  };
  writeFileSync(configFile, stringify(settings), { mode: 0o600 });
  const child = spawn(program, ['serve', '--config', configFile], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    if (process.env['LAB_LOG']) process.stderr.write(`${name} ${part}`);
    log += part;
  });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const businessUrl = `http://${business}`;
  const server: RunningServer = {
    ...{ name, pid: child.pid ?? 0, gatewayPort: ports[2] ?? 0, businessUrl, issuerListen, consoleListen },
    log: () => log,
    events: (event) =>
      log
        .split('\n')
        .filter((line) => line.includes(`"event":"${event}"`))
        .map((line) => JSON.parse(line)),
    business: (path, call) => callApi(issuer, businessUrl + path, call),
    write: (path, { reason = 'a test', ...call }) =>
      callApi(issuer, businessUrl + path, {
        method: 'POST',
        ...call,
        headers: { 'Idempotency-Key': crypto.randomUUID(), 'Audit-Reason': reason, ...call.headers },
      }),
    async kill(signal, which = 'service') {
      const gateways = which === 'all' ? gatewaysOf(own) : [];
      child.kill(signal);
      await exited;
      for (const pid of [...gateways, ...(which === 'all' ? gatewaysOf(own) : [])]) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has just ended.
        }
      }
    },
  };
  const isReady = () => server.events('serve.ready').length > 0;
  await Promise.race([eventually(async () => isReady(), Boolean), exited]);
  if (!isReady()) throw new Error(`server ${name} did not start: ${log}`);
  return server;
}

async function callApi(issuer: TestIssuer, url: string, call: Call = {}): Promise<Reply> {
  const { as, body, method = 'GET', headers } = call;
  const token = call.token ?? (as && (await issuer.token(as)));
  const response = await fetch(url, {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? '' : JSON.parse(text), headers: response.headers };
}

function startSsh(dir: string, children: Set<ChildProcess>, port: number, command: string): OpenSsh {
  const settings = [
    ...['IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', 'StrictHostKeyChecking=yes'],
    ...[`UserKnownHostsFile=${dir}/known_hosts`, 'UpdateHostKeys=no'],
  ];
  const child = spawn(
    'ssh',
    [
      ...['-F', 'none', '-i', join(dir, 'user'), '-p', `${port}`, '-l', `${alpha}.root`],
      ...settings.flatMap((setting) => ['-o', setting]),
      ...['127.0.0.1', command],
    ],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  children.add(child);
  child.stdin.on('error', () => {});
  const parts = { out: '', err: '' };
  child.stderr.setEncoding('utf8').on('data', (part) => {
    parts.err += part;
  });
  const said = new Promise<string>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (part) => {
      parts.out += part;
      resolve(parts.out);
    });
    child.on('close', () => resolve(parts.out + parts.err));
  });
  const ended = new Promise<Awaited<OpenSsh['ended']>>((resolve) =>
    child.on('close', (status) => {
      children.delete(child);
      resolve({ status, ...parts });
    }),
  );
  return { child, said, out: () => parts.out, ended };
}

function ssh(dir: string, children: Set<ChildProcess>, port: number, command: string): OpenSsh['ended'] {
  const { child, ended } = startSsh(dir, children, port, command);
  child.stdin?.end();
  return ended;
}
