/** What an operator can watch: IDs that join lines of the log, a line for each request, and Prometheus metrics. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import manifest from '../../package.json' with { type: 'json' };
import { createLogger } from '../../src/lib/log.ts';
import { createMetrics } from '../../src/service/compose/metrics/metrics.ts';
import { writeBackup } from '../../src/store/data-dir/backup.ts';
import { noteBackup } from '../../src/store/data-dir/last-backup.ts';
import { alpha, beta, eventually, startTestApp } from '../support/app.ts';
import { freePorts, listening } from '../support/ports.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';

test('request IDs, and metrics on an address of their own', async () => {
  const [port] = await freePorts(1);
  await using service = await startTestApp({ config: { metrics: { listen: `127.0.0.1:${port}` } } });
  const scrape = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

  // Every response carries a request ID: the caller’s own where it is a sane one.
  for (const path of ['/me', '/nowhere', '/healthz', '/docs']) {
    const made = await service.business(path, { as: 'ada' });
    assert.match(made.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/, path);
  }
  const own = await service.platform('/healthz', { headers: { 'X-Request-Id': 'trace-1.a_B' } });
  assert.equal(own.headers.get('x-request-id'), 'trace-1.a_B');
  for (const id of ['a b', 'x'.repeat(65), '<i>']) {
    const reply = await service.business('/healthz', { headers: { 'X-Request-Id': id } });
    assert.notEqual(reply.headers.get('x-request-id'), id);
  }

  // Requests are counted by API, operation and status, with their latency.
  await service.business('/me', { as: 'ada' });
  await service.business('/me');
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const text = await eventually(scrape, (now) => now.includes('operation="registerSshKey",status="201"'));
  assert.match(text, /^andromeda_http_requests_total\{api="business",operation="getMe",status="200"\} 2$/m);
  assert.match(text, /^andromeda_http_requests_total\{api="business",operation="getMe",status="401"\} 1$/m);
  assert.match(text, /^andromeda_http_request_seconds_bucket\{le="5",api="business",operation="getMe"\} 3$/m);
  assert.ok(!text.includes('nowhere'), 'addresses that are none make no rows');

  // Passes over clusters, their lag, convergence, writes, sessions and the process itself.
  // The key may still be on its way.
  const applied = /^andromeda_sync_unapplied_seconds\{cluster="alpha",side="slurm"\} 0$/m;
  const passed = await eventually(
    scrape,
    (now) => applied.test(now) && /andromeda_sync_convergence_seconds_count [1-9]/.test(now),
  );
  assert.match(passed, /^andromeda_sync_lag_seconds\{cluster="alpha",side="slurm"\} [\d.]+$/m);
  assert.match(passed, /^andromeda_sync_observed_age_seconds\{cluster="alpha",side="slurm"\} [\d.]+$/m);
  assert.match(passed, /^andromeda_sync_pass_seconds_count\{outcome="done"\} [1-9]/m);
  assert.match(passed, /^andromeda_store_write_seconds_count [1-9]/m);
  assert.match(passed, /^andromeda_gateway_sessions 0$/m);
  assert.match(passed, /^andromeda_gateway_up 1$/m);
  assert.match(passed, /^andromeda_login_nodes_down\{cluster="alpha"\} 0$/m);
  assert.match(passed, /^process_resident_memory_bytes \d+$/m);
  service.advance(30_000);
  const later = await scrape();
  assert.match(later, /^andromeda_sync_lag_seconds\{cluster="alpha",side="slurm"\} (29|3\d)/m);

  // The program, its database, its disk and its last backup.
  const { version } = manifest;
  const before = await scrape();
  assert.match(
    before,
    RegExp(`^andromeda_build_info\\{version="${version}",commit="checkout",.*\\} 1$`, 'm'),
  );
  assert.match(before, /^andromeda_database_bytes [1-9]\d{3,}$/m);
  assert.match(before, /^andromeda_database_wal_bytes [1-9]\d*$/m);
  assert.match(before, /^andromeda_data_free_bytes [1-9]\d*$/m);
  assert.match(before, /^andromeda_backup_last_timestamp_seconds 0$/m);
  const info = { madeAt: '2026-01-02T03:04:05Z', version };
  const file = join(service.dataDir, 'backup');
  await writeBackup(join(service.dataDir, 'data'), file, info);
  noteBackup(join(service.dataDir, 'data'), { at: info.madeAt, file, bytes: 1 });
  const seconds = Date.parse(info.madeAt) / 1000;
  assert.match(await scrape(), RegExp(`^andromeda_backup_last_timestamp_seconds ${seconds}$`, 'm'));

  // Nothing else is served there, and metrics nowhere else.
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404);
  assert.equal((await service.business('/metrics', { as: 'ada' })).status, 404);
  assert.ok(!(await scrape()).includes(alpha));
});

function scrapeOf(metrics: ReturnType<typeof createMetrics>, sessions: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const response = { writeHead: () => response, end: resolve };
  metrics.handler({ count: () => sessions, unreached: [], fault: undefined })(
    { method: 'GET', url: '/metrics' } as never,
    response as never,
  );
  return promise;
}

test('a refused login is counted with its reason, and a warning by its event', async () => {
  const lines: string[] = [];
  const metrics = createMetrics(Date.now);
  const log = metrics.watch(createLogger('warn', (line) => lines.push(line)));
  log.info('gateway.login.refused', { id: '1', remoteAddress: '192.0.2.1', reason: 'key_revoked' });
  log.info('gateway.logins.refused', { source: '192.0.2.1', reason: 'unknown', logins: 40 });
  log.warn('sync.failed', {
    cluster: 'alpha',
    clusterId: alpha,
    side: 'slurm',
    error: new Error('gone'),
    failures: 1,
    retryMs: 500,
    ms: 1200,
    behindMs: 0,
  });
  log.debug('sync.login_nodes', { cluster: 'alpha', down: 1 });
  log.debug('sync.login_nodes', { cluster: 'beta', down: 1 });
  log.debug('sync.released', { cluster: 'beta', side: 'slurm' });
  assert.equal(lines.length, 1, 'what the level leaves out is counted and not written');
  const text = await scrapeOf(metrics, 3);
  assert.match(text, /andromeda_gateway_logins_total\{result="refused",reason="key_revoked"\} 1/);
  assert.match(text, /andromeda_gateway_logins_total\{result="refused",reason="unknown"\} 40/);
  assert.match(text, /andromeda_sync_pass_seconds_count\{outcome="failed"\} 1/);
  assert.match(text, /andromeda_log_events_total\{level="warn",event="sync.failed"\} 1/);
  // Without a series before it, a first error is no increase, and no alert.
  assert.match(text, /andromeda_log_events_total\{level="error",event="http.unready"\} 0/);
  assert.match(text, /andromeda_gateway_sessions 3/);
  assert.deepEqual(text.match(/^andromeda_login_nodes_down.*$/gm), [
    'andromeda_login_nodes_down{cluster="alpha"} 1',
  ]);
});

test('each side of a cluster has its own ages: of its last report, of its last pass, and of what it has not applied', async () => {
  let now = 1_000_000;
  const metrics = createMetrics(() => now);
  const log = metrics.watch(createLogger('silent'));
  const text = await scrapedOnce();
  const age = (name: string, side: string) =>
    Number(
      RegExp(`^andromeda_sync_${name}\\{cluster="alpha",side="${side}"\\} (\\S+)$`, 'm').exec(text)?.[1] ??
        NaN,
    );
  const ages = (side: string) =>
    ['observed_age_seconds', 'lag_seconds', 'unapplied_seconds'].map((name) => age(name, side));
  // It is observed while what it has to apply fails; the other side has everything.
  assert.deepEqual(ages('slurm'), [10, 30, 27]);
  assert.deepEqual(ages('kubernetes'), [30, 30, 0]);
  const waiting = (side: string) => ['waiting_hosts', 'waiting_hosts_seconds'].map((name) => age(name, side));
  assert.deepEqual(
    [waiting('slurm'), waiting('kubernetes')],
    [
      [2, 10],
      [0, 0],
    ],
  );

  async function scrapedOnce() {
    const [slurm, kubernetes] = (['slurm', 'kubernetes'] as const).map((side) => ({
      cluster: 'alpha',
      clusterId: alpha,
      side,
    }));
    for (const about of [slurm, kubernetes] as {
      cluster: string;
      clusterId: string;
      side: 'slurm' | 'kubernetes';
    }[]) {
      log.debug('sync.observed', { ...about, waiting: 0 });
      log.debug('sync.passed', { ...about, ms: 5, behindMs: 0 });
    }
    now += 3_000;
    const about = { cluster: 'alpha', clusterId: alpha, side: 'slurm' } as const;
    log.debug('sync.changed', about);
    now += 17_000;
    log.debug('sync.observed', { ...about, waiting: 2 });
    log.warn('sync.failed', {
      ...about,
      error: new Error('no'),
      failures: 1,
      retryMs: 1,
      ms: 5,
      behindMs: 17_000,
    });
    now += 10_000;
    return scrapeOf(metrics, 0);
  }
});

test('a figure that cannot be had is an answer in words', async () => {
  const { handler } = createMetrics(Date.now);
  const server = createServer(
    handler({
      count() {
        throw new Error('nobody knows');
      },
      unreached: [],
      fault: undefined,
    }),
  );
  const answer = await fetch(`http://127.0.0.1:${await listening(server)}/metrics`);
  assert.deepEqual(
    [answer.status, await answer.text()],
    [500, 'The metrics cannot be collected: nobody knows\n'],
  );
  server.close();
});

type Line = Record<string, unknown> & { event: string };

/** A service, and what it logs. */
async function loggedApp() {
  const lines: Line[] = [];
  const service = await startTestApp({ log: createLogger('debug', (line) => lines.push(JSON.parse(line))) });
  const find = async (event: string, fields: object) => {
    const wanted = Object.entries(fields);
    const search = async () =>
      lines.find(
        (line) =>
          line.event === event && wanted.every(([name, value]) => isDeepStrictEqual(line[name], value)),
      );
    return (await eventually(search, (line) => line !== undefined)) ?? assert.fail();
  };
  return {
    service,
    find,
    /** The pass over a cluster after which a command is in force there. */
    async passOf(commandId: string, clusterId: string) {
      const isIt = (line: Line) =>
        line['clusterId'] === clusterId &&
        line['behindMs'] === 0 &&
        (line['commands'] as string[] | undefined)?.includes(commandId);
      const search = async () => lines.find((line) => line.event === 'sync.passed' && isIt(line));
      return (await eventually(search, (line) => line !== undefined)) ?? assert.fail();
    },
  };
}

test('from the ID of a reply, lines of the log lead to its command, and to the clusters that have it in force', async () => {
  const { service, find, passOf } = await loggedApp();
  await using _ = service;
  // The passes of the start are over, or one of them would apply the key.
  for (const side of ['slurm', 'kubernetes']) await find('sync.converged', { side });
  const reply = await service.write('/me/ssh-keys', {
    as: 'bob',
    body: { public_key: newPublicKey() },
    headers: { 'X-Request-Id': 'one-of-bob' },
  });
  const { commandId } = await find('http.request', { requestId: reply.headers.get('x-request-id') });
  assert.equal(commandId, reply.body.command_id);
  assert.equal((await passOf(`${commandId}`, alpha))['side'], 'slurm');
  assert.equal((await passOf(`${commandId}`, beta))['side'], 'kubernetes');
  const applied = await find('sync.applied', { commands: [`${commandId}`] });
  assert.equal(applied['clusterId'], alpha);
});

test('the lines of a login have an ID of their own, and those of the cluster, the person and the key', async () => {
  const { service, find } = await loggedApp();
  await using _ = service;
  using bob = await sshPerson(service, 'bob');
  const login = { clusterId: alpha, userId: bob.userId, keyId: bob.keyId };
  assert.equal((await bob.ssh([bob.target, 'true'])).status, 0);
  const { id } = await find('gateway.login.accepted', login);
  await find('gateway.session.closed', { ...login, id });
  await service.write(`/me/ssh-keys/${bob.keyId}/revoke`, { as: 'bob' });
  assert.notEqual((await bob.ssh([bob.target, 'true'])).status, 0);
  await find('gateway.login.refused', { ...login, reason: 'key_revoked' });
});
