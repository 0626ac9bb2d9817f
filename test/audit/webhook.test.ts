/** The audit trail at a webhook that fails in every way: nothing is lost, and nothing is there twice that was answered for. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startAudit } from '../../src/service/audit/index.ts';
import { findLastSeq, findPosition } from '../../src/store/audit/audit.ts';
import { eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { accept, type Behaviour, entriesOf, startWebhook, upTo } from './receivers.ts';
import { openTrail } from './support.ts';

const secret = Buffer.alloc(32, 7);
const authority = createAuthority();

async function withWebhook() {
  const trail = await openTrail();
  const hook = await startWebhook(authority.issue('server'), secret);
  const start = (over: { skip?: number[]; secrets?: Buffer[]; ca?: string } = {}) => {
    const { skip = [], secrets = [secret], ca = authority.ca } = over;
    const webhook = { url: hook.url, secrets, ca: Buffer.from(ca), skip: new Set(skip), timeoutMs: 1_000 };
    return startAudit(
      { signMs: 3_600_000, file: undefined, syslog: undefined, webhook },
      { ...trail, now: Date.now },
    );
  };
  const last = () => findLastSeq(trail.store.read);
  return {
    ...trail,
    hook,
    start,
    last,
    async caughtUp() {
      const seq = await last();
      await eventually(
        async () => entriesOf(hook.lines()).at(-1),
        (sent) => sent === seq,
      );
    },
    async logged(event: string, times = 1) {
      await eventually(
        async () => trail.events().filter((one) => one === event).length,
        (count) => count >= times,
      );
    },
    async [Symbol.asyncDispose]() {
      await hook[Symbol.asyncDispose]();
      await trail[Symbol.asyncDispose]();
    },
  };
}

test('a webhook gets every entry once and in order with the signed heads, in signed batches of bounded size', async () => {
  await using it = await withWebhook();
  await it.add(...upTo(700).map((index) => `${index} ${'é'.repeat(100)}`));
  // A second secret is one that is on its way out.
  const audit = it.start({ secrets: [Buffer.alloc(24, 1), secret] });
  await it.caughtUp();
  await audit.stop();
  assert.deepEqual(entriesOf(it.hook.lines()), upTo(await it.last()));
  assert.deepEqual(it.hook.faults, []);
  assert.ok(it.hook.answered.length > 3);
  for (const { lines } of it.hook.answered) assert.ok(lines.length <= 250);
  const head = it.hook.lines().at(-1);
  assert.deepEqual([head?.kind, head?.seq], ['head', await it.last()]);
  assert.deepEqual(new Set(it.hook.answered.map(({ id }) => id)).size, it.hook.answered.length);
});

/** How a receiver can fail, each of which passes. */
const troubles: Record<string, Behaviour> = {
  'answers 500': (_, response) => void response.writeHead(500).end('on fire'),
  'answers 429 and asks for a second': (_, response) =>
    void response.writeHead(429, { 'Retry-After': '1' }).end(),
  'answers 401': (_, response) => void response.writeHead(401).end(),
  'sends elsewhere': (_, response) => void response.writeHead(307, { Location: '/other' }).end(),
  'closes the connection': (_, __, request) => void request.socket.destroy(),
  'never answers': () => {},
  'answers and never ends a refusal': (_, response) => void response.writeHead(503).write('well'),
  'answers with something else': (_, __, request) => void request.socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
};

test('each trouble of a receiver is in the log once, and what was not answered for comes again', {
  concurrency: 8,
}, async (t) => {
  await Promise.all(
    Object.entries(troubles).map(([name, behave]) => t.test(name, (_: TestContext) => recoversFrom(behave))),
  );
});

async function recoversFrom(behave: Behaviour): Promise<void> {
  await using it = await withWebhook();
  await it.add('a', 'b');
  it.hook.behave = behave;
  const audit = it.start();
  await eventually(
    async () => it.hook.asked,
    (asked) => asked >= 2,
  );
  await it.add('c');
  assert.deepEqual(it.hook.answered, []);
  it.hook.behave = accept;
  await it.logged('audit.destination.working');
  await it.caughtUp();
  await audit.stop();
  assert.deepEqual(entriesOf(it.hook.lines()), upTo(await it.last()));
  assert.equal(it.events().filter((event) => event === 'audit.destination.failed').length, 1);
}

test('an answer of success counts from its first line, and its end is not waited for', async () => {
  await using it = await withWebhook();
  it.hook.behave = (batch, response) => {
    response.writeHead(200).write('a');
    it.hook.answered.push(batch);
  };
  await it.add('a');
  const audit = it.start();
  await it.caughtUp();
  await audit.stop();
  assert.deepEqual(entriesOf(it.hook.lines()), upTo(await it.last()));
});

test('a receiver whose certificate is not to be trusted gets nothing', async () => {
  await using it = await withWebhook();
  await it.add('a');
  const audit = it.start({ ca: createAuthority().ca });
  await it.logged('audit.destination.failed');
  await audit.stop();
  assert.equal(it.hook.asked, 0);
});

test('an entry that is refused for good holds up those behind it, in words, until an operator leaves it out', async () => {
  await using it = await withWebhook();
  await it.add(...upTo(40).map(String));
  const bad = (await it.last()) - 20;
  it.hook.behave = (batch, response, request) => {
    if (!entriesOf(batch.lines).includes(bad)) return accept(batch, response, request);
    response.writeHead(422).end('no such operation');
  };
  const audit = it.start();
  await it.logged('audit.message.refused');
  assert.deepEqual(entriesOf(it.hook.lines()), upTo(bad - 1));
  const { fields } = it.lines.find(({ event }) => event === 'audit.message.refused') ?? {};
  const { seq, error, message } = fields as { seq: number; error: string; message: string };
  assert.deepEqual([seq, error], [bad, 'answers 422: no such operation']);
  assert.match(message, RegExp(`add ${bad} to audit\\.webhook\\.skip`));
  assert.doesNotMatch(message, /hook\?/);
  await audit.stop();

  const next = it.start({ skip: [bad] });
  await it.caughtUp();
  await next.stop();
  assert.deepEqual(entriesOf(it.hook.lines()), [...upTo(bad - 1), ...upTo(await it.last(), bad + 1)]);
  assert.equal(it.events().filter((event) => event === 'audit.message.skipped').length, 1);
});

test('what a power cut could take back is not sent before it is on disk', async () => {
  await using it = await withWebhook();
  const order: string[] = [];
  const store = {
    ...it.store,
    write: async (body: never, options?: { flush: boolean }) => {
      const result = await it.store.write(body, options);
      if (options === undefined || options.flush) order.push('flushed');
      return result;
    },
  };
  it.hook.behave = (batch, response, request) => {
    order.push('sent');
    accept(batch, response, request);
  };
  const webhook = {
    url: it.hook.url,
    secrets: [secret],
    ca: Buffer.from(authority.ca),
    skip: new Set<number>(),
  };
  const config = {
    signMs: 3_600_000,
    file: undefined,
    syslog: undefined,
    webhook: { ...webhook, timeoutMs: 1_000 },
  };
  await it.add('a');
  const audit = startAudit(config, { ...it, store: store as typeof it.store, now: Date.now });
  await it.caughtUp();
  await audit.stop();
  assert.equal(order[order.indexOf('sent') - 1], 'flushed');
});

test('a position whose entry is another one by now is in the log, and does not end the stream', async () => {
  await using it = await withWebhook();
  await it.add('a', 'b');
  const first = it.start();
  await it.caughtUp();
  await first.stop();
  await it.store.write(async ({ db }) => {
    await db.updateTable('audit_positions').set({ entry_hash: 'sha256:other' }).execute();
  });
  await it.add('c');
  const second = it.start();
  await it.caughtUp();
  await second.stop();
  assert.ok(it.events().includes('audit.destination.diverged'));
  assert.deepEqual(entriesOf(it.hook.lines()), upTo(await it.last()));
});

test('a service that is killed again and again loses nothing, and repeats at most the batch that was under way', async () => {
  await using it = await withWebhook();
  const { store, dataDir, hook } = it;
  await store.close();
  const repeated: number[] = [];
  for (const moment of ['asked', 'answered', 'later', 'asked', 'answered', 'later'] as const) {
    const child = startWriter(dataDir, hook.url);
    const exited = once(child, 'exit');
    let batches = 0;
    hook.behave = (batch, response, request) => {
      batches += 1;
      if (batches < 2 || moment === 'later') return accept(batch, response, request);
      if (moment === 'answered') {
        repeated.push(...entriesOf(batch.lines));
        response.on('finish', () => child.kill('SIGKILL'));
        return accept(batch, response, request);
      }
      child.kill('SIGKILL');
    };
    if (moment === 'later') {
      await eventually(
        async () => batches,
        (count) => count >= 2,
      );
      const known = hook.answered.length;
      child.kill('SIGKILL');
      await exited;
      // One that was on its way is answered still.
      await sleep(200);
      for (const { lines } of hook.answered.slice(known - 1)) repeated.push(...entriesOf(lines));
    }
    await exited;
  }
  hook.behave = accept;
  const child = startWriter(dataDir, hook.url);
  const [[line]] = (await Promise.all([once(child.stdout as never, 'data'), child.stdin?.end()])) as [
    [Buffer],
    unknown,
  ];
  const position = JSON.parse(`${line}`) as { last: number };
  await once(child, 'exit');
  const lines = hook.lines().filter(({ kind }) => kind === 'entry');
  const seen = new Map<number, string>();
  let end = 0;
  for (const { seq, hash } of lines) {
    assert.ok(seq <= end + 1, `${seq} came after ${end}`);
    if (seq <= end) {
      // The answer was lost with the process: the same entry, and of that batch.
      assert.ok(repeated.includes(seq), `${seq} came twice`);
      assert.equal(seen.get(seq), hash);
    }
    seen.set(seq, hash);
    end = Math.max(end, seq);
  }
  assert.equal(end, position.last);
  assert.deepEqual(hook.faults, []);
});

/** Writes entries and sends them, until it is killed, or its stdin ends: then it prints how far it is. */
function startWriter(dataDir: string, url: URL): ChildProcess {
  const script = join(import.meta.dirname, 'trail-writer.ts');
  return spawn(process.execPath, [script, dataDir, url.href, secret.toString('base64')], {
    env: { ...process.env, TRAIL_CA: authority.ca },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

test('the position is stored with the hash of its entry', async () => {
  await using it = await withWebhook();
  await it.add('a');
  const audit = it.start();
  await it.caughtUp();
  await audit.stop();
  const [row] = await it.store.read.selectFrom('audit_positions').selectAll().execute();
  assert.doesNotMatch(row?.destination ?? '', /hook|of=andromeda/);
  const position = await findPosition(it.store.read, row?.destination ?? '');
  assert.deepEqual(
    [position.entry, position.hash],
    [await it.last(), it.hook.lines().findLast(({ kind }) => kind === 'entry')?.hash],
  );
});
