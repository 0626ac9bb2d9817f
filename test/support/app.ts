/** The whole service in this process, on free ports, a database of its own on disk, and a clock a test can move. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JWTPayload } from 'jose';
import { stringify } from 'yaml';
import { checkLab, type Lab } from '../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../src/domain/clusters/lab-member.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { makeSecretsKey } from '../../src/lib/secrets-key.ts';
import { type App, startApp } from '../../src/service/compose/index.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import type { Store } from '../../src/store/engine/index.ts';
import type { TestAuthority } from './certificate.ts';
import { type Discovery, startTestIssuer, type TestIssuer } from './issuer.ts';
import { watchApis } from './judge.ts';
import { limit } from './limit.ts';
import { freePorts } from './ports.ts';
import { commitElsewhere, createTestDatabase } from './postgres.ts';
import { placeDatabase } from './template.ts';

export interface Call {
  /** A name (the person `<name>@physics.example`), or nobody when left out. */
  as?: string | undefined;
  token?: string;
  method?: string;
  /** An object is sent as JSON, a string as it is. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Reply {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: replies are checked against the documents by the service itself
  body: any;
  headers: Headers;
}

export interface TestApp extends AsyncDisposable {
  app: App;
  dataDir: string;
  /** Opens what it served from, once it is stopped. */
  reopen(): Promise<Store>;
  /** Commits a statement as another process would. */
  elsewhere(sql: string): Promise<void>;
  issuer: TestIssuer;
  gatewayPort: number;
  businessUrl: string;
  platformUrl: string;
  business(path: string, call?: Call): Promise<Reply>;
  platform(path: string, call?: Call): Promise<Reply>;
  /** A Business write with its two headers. */
  write(path: string, call: Call & { key?: string; reason?: string }): Promise<Reply>;
  put(as: string, path: string, body: object): Promise<Reply>;
  /** Lets time pass. */
  advance(milliseconds: number): void;
  /** Sets the clock of the host forward or back; no time passes. */
  jump(milliseconds: number): void;
}

/** One organization with an owner, a member who may log in, one who may do nothing, and two clusters. */
export const physics: Lab = {
  users: [{ email: 'root@physics.example', name: 'Root', staff: ['staff.operate'] }],
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [
        { email: 'ada@physics.example', role: 'owner', username: 'ada' },
        {
          email: 'bob@physics.example',
          role: 'member',
          username: 'bob',
          permissions: ['clusters.read', 'clusters.ssh'],
        },
        { email: 'eve@physics.example', role: 'member', username: 'eve' },
      ],
    },
    {
      slug: 'chemistry',
      name: 'Chemistry',
      autoJoinDomains: ['chemistry.example'],
      members: [{ email: 'carl@chemistry.example', role: 'owner', username: 'carl' }],
    },
  ],
  clusters: [
    {
      name: 'alpha',
      id: '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50',
      organization: 'physics',
      site: { id: 'room-1', name: 'Machine room 1' },
      scheduler: 'sunk',
      simulated: { computeNodes: 2, gpusPerNode: 8, applyMs: 50 },
    },
    {
      name: 'beta',
      id: '8c6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50',
      organization: 'physics',
      scheduler: 'kubernetes',
      simulated: { computeNodes: 2, gpusPerNode: 8, applyMs: 50 },
    },
  ],
};

/** Its clusters without login nodes, which are processes of their own. */
export const loginless: NonNullable<Lab['clusters']> = (physics.clusters ?? []).map((cluster) => ({
  ...cluster,
  scheduler: 'kubernetes',
}));

/** As `physics`, with more members of the organization of that name. */
export const physicsWith = (...members: LabMember[]): Lab => ({
  ...physics,
  organizations: (physics.organizations ?? []).map((one) =>
    one.slug === 'physics' ? { ...one, members: [...(one.members ?? []), ...members] } : one,
  ),
});

export const alpha = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
export const beta = '8c6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

/** Starts it; `await using` stops it and removes its data. */
export async function startTestApp(
  options: {
    lab?: Lab;
    config?: object;
    identity?: object;
    /** Where the issuer has what; at the usual paths when left out. */
    discovery?: Discovery;
    /** Signs the certificate of the issuer, which has TLS then; it is `ca.pem` next to the settings. */
    issuerAuthority?: TestAuthority;
    sync?: object;
    gateway?: object;
    gatewayLimits?: object;
    log?: Logger;
  } = {},
): Promise<TestApp> {
  const dataDir = mkdtempSync(join(tmpdir(), 'andromeda-test-'));
  let passed = 0;
  let offset = 0;
  const now = () => Date.now() + passed + offset;
  const uptime = () => performance.now() + passed;
  const { issuerAuthority } = options;
  const issuer = await startTestIssuer(now, options.discovery, issuerAuthority?.issue('server'));
  if (issuerAuthority) writeFileSync(join(dataDir, 'ca.pem'), issuerAuthority.ca);
  const [platformPort = 0, businessPort = 0, gatewayPort = 0] = await freePorts(3);
  const file = join(dataDir, 'andromeda.yaml');
  const database = await createTestDatabase();
  const settings = {
    dataDir: './data',
    ...(database && { database: database.url, secretsKeyFile: './secrets.key' }),
    platform: { listen: `127.0.0.1:${platformPort}` },
    business: { listen: `127.0.0.1:${businessPort}` },
    gateway: {
      listen: `127.0.0.1:${gatewayPort}`,
      port: gatewayPort,
      // Quicker to start; test/gateway/process has the others.
      processes: 0,
      limits: options.gatewayLimits ?? {},
      ...options.gateway,
    },
    identity: { issuer: issuer.url, ...options.identity },
    sync: { intervalSeconds: 1, ...options.sync },
    ...options.config,
    // Tests run without root as well.
    clusters: {
      allowSimulated: true,
      unsafeSimulatedLogins: true,
      ...(options.config as { clusters?: object } | undefined)?.clusters,
    },
  };
  writeFileSync(file, stringify(settings));
  writeFileSync(join(dataDir, 'secrets.key'), makeSecretsKey(), { mode: 0o600 });
  const lab = options.lab ?? physics;
  checkLab(lab);
  const config = readConfig(file);
  if (config.database === undefined) await placeDatabase(config.dataDir);
  const log = options.log ?? createLogger(process.env['ANDROMEDA_TEST_LOG'] ? 'debug' : 'silent');
  const installation = { lab, source: 'test' };
  const watch = watchApis({ platform: platformPort, business: businessPort });
  const app = await startApp({ config, log, installation, now, uptime }).catch(async (error) => {
    // Or the test would hang instead of failing.
    await issuer[Symbol.asyncDispose]();
    rmSync(dataDir, { recursive: true, force: true });
    await database?.drop();
    throw error;
  });

  async function call(base: string, path: string, options: Call = {}): Promise<Reply> {
    const token = options.token ?? (options.as === undefined ? undefined : await issuer.token(options.as));
    const { body } = options;
    const response = await fetch(base + path, {
      method: options.method ?? 'GET',
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return {
      status: response.status,
      body: isJson && text !== '' ? JSON.parse(text) : text,
      headers: response.headers,
    };
  }

  let keys = 0;
  const business = (path: string, options?: Call) => call(config.business.url, path, options);
  const write: TestApp['write'] = (path, { key = `key-${++keys}`, reason = 'a test', ...options }) =>
    business(path, {
      method: 'POST',
      ...options,
      headers: { 'Idempotency-Key': key, 'Audit-Reason': reason, ...options.headers },
    });
  return {
    app,
    dataDir,
    elsewhere: (sql) => commitElsewhere(config.database, config.dataDir, sql),
    reopen: () => openStore(config.dataDir, { database: config.database }),
    issuer,
    gatewayPort,
    businessUrl: config.business.url,
    platformUrl: config.platform.url,
    business,
    platform: (path, options) => call(config.platform.url, path, options),
    write,
    put: (as, path, body) => write(path, { as, method: 'PUT', body }),
    advance(milliseconds) {
      passed += milliseconds;
    },
    jump(milliseconds) {
      offset += milliseconds;
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
      await database?.drop();
      await watch.end();
    },
  };
}

/** Asks until the answer is as wanted; fails with the last answer when that takes too long. */
export async function eventually<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const limitMs = limit(60_000);
  const started = performance.now();
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    const passedMs = performance.now() - started;
    if (passedMs > limitMs) throw new Error(`still ${JSON.stringify(answer)} after ${limitMs / 1000} s`);
    // What takes long may be asked less often: asking costs the processor time that it waits for.
    await new Promise((done) => setTimeout(done, Math.min(Math.max(50, passedMs / 20), 1_000)));
  }
}

/** Waits until the answer is this one. */
export function becomes<T>(ask: () => T | Promise<T>, wanted: T): Promise<T> {
  return eventually(
    async () => ask(),
    (answer) => answer === wanted,
  );
}

export type { JWTPayload };
