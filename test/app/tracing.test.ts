/** Traces at a collector of our own: one from a key's POST to the cluster's report, and none of it where nobody asked for it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { activeSpan, inSpan, parseTraceparent, within } from '../../src/lib/trace.ts';
import { traceLogins } from '../../src/service/compose/authorize-login.ts';
import { eventually, startTestApp } from '../support/app.ts';
import { type CollectedSpan, startCollector } from '../support/collector.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

const loaded: string[] = [];
registerHooks({
  resolve(specifier, context, next) {
    if (specifier.includes('opentelemetry')) loaded.push(specifier);
    return next(specifier, context);
  },
});

const given = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
const traceparent = `00-${given.traceId}-${given.spanId}-01`;

async function tracedApp(config: object = {}) {
  const collector = await startCollector();
  const directory = temporaryDirectory();
  const headersFile = join(directory.path, 'headers');
  writeFileSync(headersFile, 'Authorization: Bearer of-the-collector\n', { mode: 0o600 });
  const lines: string[] = [];
  const log = createLogger('debug', (line) => lines.push(line));
  const service = await startTestApp({
    config: { tracing: { otlp: collector.url, headersFile }, ...config },
    log,
  });
  return {
    collector,
    service,
    lines,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await collector[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
}

/** The way of a span's ancestors, itself first. */
function wayUp(span: CollectedSpan, spans: CollectedSpan[]): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [span.name, ...(parent ? wayUp(parent, spans) : [])];
}

test('without the setting, nothing of the SDK is loaded', async () => {
  await using service = await startTestApp();
  assert.equal((await service.business('/me', { as: 'ada' })).status, 200);
  assert.deepEqual(loaded, []);
});

test('one trace goes from the POST of a key to the report of the cluster that confirms it', async () => {
  await using it = await tracedApp();
  const { collector, service, lines } = it;
  // The passes of the start are over, or one of them would apply the key, in a trace of its own.
  await eventually(
    async () => lines.filter((line) => line.includes('"sync.converged"')),
    (converged) => ['slurm', 'kubernetes'].every((side) => converged.some((line) => line.includes(side))),
  );
  const reply = await service.write('/me/ssh-keys', {
    as: 'bob',
    body: { public_key: `${newPublicKey()} laptop` },
    reason: 'Bob has a new laptop',
    headers: { traceparent },
  });
  assert.equal(reply.status, 201);
  const spans = await eventually(
    async () => {
      const request = collector.spans.find(({ name }) => name === 'business registerSshKey');
      return collector.spans.filter(({ traceId }) => traceId === request?.traceId);
    },
    (all) =>
      all.some(
        ({ name, attributes }) => name === 'sync slurm' && attributes['andromeda.in_force'] === true,
      ) && all.some(({ name }) => name === 'business registerSshKey'),
    30_000,
  );
  assert.deepEqual(collector.faults, []);

  const request = spans.find(({ name }) => name === 'business registerSshKey');
  assert.equal(request?.kind, 2);
  assert.equal(request?.parentSpanId, '', 'a stranger’s trace is not gone on with');
  assert.deepEqual(request?.links, [given]);
  assert.equal(request?.attributes['http.response.status_code'], 201);
  const commandId = request?.attributes['andromeda.command_id'];
  assert.match(`${commandId}`, /^command_/);

  const ways = spans.map((span) => wayUp(span, spans).join(' < '));
  const write = 'store.write < command < business registerSshKey';
  assert.ok(ways.includes(write), ways.join('\n'));
  const pass = spans.findLast(
    ({ name, attributes }) => name === 'sync slurm' && attributes['andromeda.in_force'] === true,
  );
  assert.ok(pass);
  assert.equal(pass.attributes['andromeda.command_id'], commandId);
  assert.match(wayUp(pass, spans).join(' < '), RegExp(`^sync slurm < .*${write}$`));
  const inPass = ways
    .filter((way) => / < sync slurm < /.test(way))
    .map((way) => way.split(' < ').slice(0, 2));
  for (const step of ['plan', 'observe', 'record', 'apply'])
    assert.ok(
      inPass.some(([name, parent]) => name === step && parent === 'sync slurm'),
      `${step} in ${ways.join('\n')}`,
    );

  assert.equal(collector.headers[0]?.authorization, 'Bearer of-the-collector');
  const logged = lines.map((line) => JSON.parse(line)).filter(({ traceId }) => traceId === request?.traceId);
  assert.ok(
    logged.some(({ event, operation }) => event === 'http.request' && operation === 'registerSshKey'),
  );
  assert.ok(logged.some(({ event }) => event === 'sync.applied'));
  for (const text of collector.texts)
    assert.doesNotMatch(text, /laptop|physics\.example|bob|ssh-ed25519|of-the-collector/i);
});

test('changes that share a pass have it in each of their traces', async () => {
  await using it = await tracedApp();
  const post = (as: string) => it.service.write('/me/ssh-keys', { as, body: { public_key: newPublicKey() } });
  for (const { status } of await Promise.all([post('ada'), post('bob'), post('bob')]))
    assert.equal(status, 201);
  await eventually(
    async () => {
      const { spans } = it.collector;
      const requests = spans.filter(({ name }) => name === 'business registerSshKey');
      return requests.map(({ traceId }) =>
        spans.some(
          (span) =>
            span.traceId === traceId &&
            span.name === 'sync slurm' &&
            span.attributes['andromeda.in_force'] === true,
        ),
      );
    },
    (confirmed) => confirmed.length === 3 && confirmed.every(Boolean),
    30_000,
  );
});

test('a trace of a trusted proxy is gone on with; routine passes have none', async () => {
  await using it = await tracedApp({ trustedProxies: ['127.0.0.1'] });
  await it.service.business('/me', { as: 'ada', headers: { traceparent } });
  const [me] = await eventually(
    async () => it.collector.spans.filter(({ name }) => name === 'business getMe'),
    (spans) => spans.length > 0,
  );
  assert.deepEqual([me?.traceId, me?.parentSpanId, me?.links], [given.traceId, given.spanId, []]);
  assert.deepEqual(
    it.collector.spans.filter(({ name, parentSpanId }) => name.startsWith('sync ') && parentSpanId === ''),
    [],
  );
});

test('headers that are no traceparent are none', () => {
  assert.deepEqual(parseTraceparent(traceparent), { ...given, sampled: true });
  const wrong = [
    '',
    'x',
    `01-${given.traceId}-${given.spanId}-01`,
    `00-${'0'.repeat(32)}-${given.spanId}-01`,
  ];
  for (const header of [...wrong, `00-${given.traceId}-${'0'.repeat(16)}-00`, [traceparent], undefined])
    assert.equal(parseTraceparent(header), undefined);
});

async function tracer(url: string) {
  const { startTracing } = await import('../../src/service/compose/metrics/tracing.ts');
  const events: { event: string; fields: Record<string, unknown> }[] = [];
  const at = (event: string, fields: object) => void events.push({ event, fields: { ...fields } });
  const log: Logger = { debug: at, info: at, warn: at, error: at };
  const tracing = startTracing({ url: new URL(url), headers: {}, ca: undefined, sampleRatio: 1 }, log);
  return { tracing, of: (name: string) => events.filter(({ event }) => event === name) };
}

test('a collector that is away costs spans, which are counted and said once, and nothing else', async () => {
  const [port = 0] = await freePorts(1);
  const { tracing, of } = await tracer(`http://127.0.0.1:${port}/v1/traces`);
  for (let index = 0; index < 5_000; index++) tracing.begin('one').end();
  const dropped = () => of('tracing.dropped').reduce((sum, { fields }) => sum + Number(fields['spans']), 0);
  assert.equal(dropped(), 5_000 - 2_048);
  assert.equal(of('tracing.failed').length, 1);
  await eventually(
    async () => dropped(),
    (spans) => spans === 5_000,
    60_000,
  );
  assert.equal(of('tracing.failed').length, 1);
  await using collector = await startCollector(port);
  await eventually(
    async () => {
      tracing.begin('two').end();
      return of('tracing.working').length;
    },
    (times) => times === 1,
    20_000,
  );
  assert.deepEqual(of('tracing.working')[0]?.fields, { dropped: 5_000 });
  await tracing.stop();
  assert.ok(collector.spans.every(({ name }) => name === 'two'));
});

test('a login at the gateway has a trace with IDs and the reason, and no look at an open session', async () => {
  await using collector = await startCollector();
  const { tracing } = await tracer(collector.url);
  const subject = { clusterId: 'cluster', userId: 'user_1', keyId: 'key_1' };
  const decision = { allowed: false as const, reason: 'key_revoked', message: 'no', disclose: true, subject };
  const authorize = traceLogins(async () => decision, tracing);
  const attempt = { loginName: 'bob', publicKey: 'k', fingerprint: 'f', remoteAddress: '192.0.2.1' };
  await authorize(attempt);
  await authorize(attempt, { host: 'h', port: 22 });
  await tracing.stop();
  assert.deepEqual(
    collector.spans.map(({ name, attributes }) => ({ name, attributes })),
    [
      {
        name: 'gateway login',
        attributes: {
          'andromeda.allowed': false,
          'andromeda.reason': 'key_revoked',
          'andromeda.cluster_id': 'cluster',
          'andromeda.user_id': 'user_1',
          'andromeda.key_id': 'key_1',
        },
      },
    ],
  );
});

test('a failure is recorded by its code, and what fails fails as before', async () => {
  await using collector = await startCollector();
  const { tracing } = await tracer(collector.url);
  const root = tracing.begin('root');
  const failing = within(root, () =>
    inSpan('part', {}, async () => {
      assert.notEqual(activeSpan()?.spanId, root.spanId);
      throw new TypeError('about Bob');
    }),
  );
  await assert.rejects(failing, /about Bob/);
  assert.equal(activeSpan(), undefined);
  root.end();
  await tracing.stop();
  assert.ok(collector.spans.find(({ name }) => name === 'part')?.failed);
  assert.doesNotMatch(collector.texts.join(), /Bob/);
});
