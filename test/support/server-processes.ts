/** Servers as processes of their own on one PostgreSQL, with a Kubernetes cluster that is not one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { type FakeApi, startFakeApi } from '../kubernetes/fake-api.ts';
import { eventually, physics } from './app.ts';
import { temporaryDirectory } from './directory.ts';
import { startTestIssuer, type TestIssuer } from './issuer.ts';
import { freePorts } from './ports.ts';
import { createPostgres, type TestPostgres } from './postgres-server.ts';
import { program } from './program.ts';

export const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

export interface ServerProcess {
  name: string;
  url: string;
  child: ChildProcess;
  /** What it logged, as it came. */
  lines: { event: string; [field: string]: unknown }[];
  /** Ends it and waits for that. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** A call of its Business API. */
  call(
    path: string,
    options: { as: string; body?: unknown; key?: string },
  ): Promise<{ status: number; body: never }>;
}

export interface ServerProcesses extends AsyncDisposable {
  api: FakeApi;
  postgres: TestPostgres;
  /** Starts one of up to three, and waits until it serves. */
  start(name: string): Promise<ServerProcess>;
  /** The name of the server that leads. */
  leader(): Promise<string | undefined>;
}

export async function shareDatabase(): Promise<ServerProcesses> {
  await using parts = new AsyncDisposableStack();
  const directory = parts.use(temporaryDirectory());
  const api = parts.use(await startFakeApi());
  const issuer = parts.use(await startTestIssuer(Date.now));
  const postgres = parts.use(await createPostgres());
  const secretsKey = randomBytes(32).toString('base64');
  const lab = writeLab(directory.path, api);
  // All at once, so that none is given twice.
  const ports = await freePorts(9);
  const kept = parts.move();
  return {
    api,
    postgres,
    async start(name) {
      const [platform, business, gateway] = ports.splice(0, 3);
      const own = join(directory.path, name);
      mkdirSync(own, { recursive: true });
      const file = join(own, 'andromeda.yaml');
      const settings = {
        dataDir: join(own, 'data'),
        server: { name },
        database: postgres.url(),
        platform: { listen: `127.0.0.1:${platform}` },
        business: { listen: `127.0.0.1:${business}` },
        gateway: { listen: `127.0.0.1:${gateway}`, processes: 0 },
        identity: { issuer: issuer.url, kubernetes: { clientId: 'andromeda-kubernetes' } },
        sync: { intervalSeconds: 1 },
        seed: lab,
      };
      writeFileSync(file, stringify(settings));
      const child = spawn(program, ['serve', '--config', file], {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, ANDROMEDA_SECRETS_KEY: secretsKey },
      });
      const server = describe(name, child, { issuer, url: `http://127.0.0.1:${business}` });
      kept.defer(() => server.kill('SIGKILL'));
      await eventually(
        async () => server.lines.map(({ event }) => event),
        (events) => events.includes('serve.ready') || child.exitCode !== null,
      );
      if (child.exitCode !== null) throw new Error(`${name} did not start: ${JSON.stringify(server.lines)}`);
      return server;
    },
    async leader() {
      const [row] = await postgres.query<{ name: string }>(
        'select s.name from leader l join servers s on s.id = l.server_id',
      );
      return row?.name;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function writeLab(directory: string, api: FakeApi): string {
  const kubeconfig = join(directory, 'gamma.kubeconfig');
  const authority = Buffer.from(api.authority.ca).toString('base64');
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: api.url, 'certificate-authority-data': authority } }],
    users: [{ name: 'u', user: { token: 'andromeda' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(kubeconfig, stringify(content), { mode: 0o600 });
  const cluster = { name: 'gamma', id: gamma, organization: 'physics', kubernetes: { kubeconfig } };
  const lab: Lab = { ...physics, clusters: [{ ...cluster, scheduler: 'kubernetes' }] };
  const file = join(directory, 'lab.yaml');
  writeFileSync(file, stringify(lab));
  return file;
}

function describe(
  name: string,
  child: ChildProcess,
  { issuer, url }: { issuer: TestIssuer; url: string },
): ServerProcess {
  const lines: ServerProcess['lines'] = [];
  let rest = '';
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    const all = `${rest}${part}`.split('\n');
    rest = all.pop() ?? '';
    for (const line of all) lines.push(line.startsWith('{') ? JSON.parse(line) : { event: 'text', line });
  });
  const exited = new Promise<void>((done) => child.once('close', () => done()));
  return {
    name,
    url,
    child,
    lines,
    async kill(signal) {
      child.kill('SIGCONT');
      child.kill(signal);
      await exited;
    },
    async call(path, { as, body, key = crypto.randomUUID() }) {
      const response = await fetch(`${url}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          Authorization: `Bearer ${await issuer.token(as)}`,
          'Content-Type': 'application/json',
          ...(body !== undefined && { 'Idempotency-Key': key, 'Audit-Reason': 'test' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as never };
    },
  };
}
