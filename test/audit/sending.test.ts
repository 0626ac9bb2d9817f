/** Copies of the trail, in real files and at real listeners. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { startAudit } from '../../src/service/audit/index.ts';
import { findLastSeq } from '../../src/store/audit/audit.ts';
import { eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { freePorts } from '../support/ports.ts';
import { openTrail } from './support.ts';

const config = { signMs: 3_600_000, file: undefined, syslog: undefined, webhook: undefined };
const limits = { client: undefined, timeoutMs: 10_000 };
type Line = { kind: string; seq: number; target?: string };

async function withFile() {
  const trail = await openTrail();
  const file = join(trail.dataDir, 'trail.jsonl');
  const raw = () => readFileSync(file, 'utf8');
  const lines = (): Line[] =>
    raw()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const last = () => findLastSeq(trail.store.read);
  return {
    ...trail,
    file,
    raw,
    lines,
    last,
    seqs: () => seqsOf(lines()),
    start: () => startAudit({ ...config, file }, { ...trail, now: Date.now }),
    /** Until the file ends with the trail's last entry. */
    async caughtUp() {
      const seq = await last();
      await eventually(
        async () => lines(),
        (all) => seqsOf(all).at(-1) === seq,
      );
    },
  };
}

const seqsOf = (lines: Line[]) => lines.filter(({ kind }) => kind === 'entry').map(({ seq }) => seq);
const upTo = (last: number, from = 1) => Array.from({ length: last - from + 1 }, (_, index) => from + index);

test('a file has every entry once and in order, with the signed heads, as lines of ASCII', async () => {
  await using trail = await withFile();
  await trail.add(...upTo(250).map(String));
  const audit = trail.start();
  await trail.add('later');
  await audit.stop();
  assert.deepEqual(trail.seqs(), upTo(await trail.last()));
  const head = trail.lines().at(-1);
  assert.deepEqual([head?.kind, head?.seq], ['head', await trail.last()]);
  assert.equal(statSync(trail.file).mode & 0o777, 0o640);
  assert.match(trail.raw(), /^[\x20-\x7e\n]+$/);
  assert.match(trail.raw(), /"reason":"Zo\\u00eb\\u202e"/);
});

test('a file that was moved away is begun anew behind what it had', async () => {
  await using trail = await withFile();
  const audit = trail.start();
  await trail.add('a');
  const before = await trail.last();
  await eventually(
    async () => statSync(trail.file, { throwIfNoEntry: false })?.size ?? 0,
    (size) => size > 0,
  );
  await trail.caughtUp();
  renameSync(trail.file, `${trail.file}.1`);
  await trail.add('b', 'c');
  await audit.stop();
  assert.deepEqual(trail.seqs(), upTo(await trail.last(), before + 1));
});

test('after a crash nothing is there twice, and a line that was cut is there again, whole', async () => {
  await using trail = await withFile();
  await trail.add('a', 'b');
  await trail.start().stop();
  // As if the service had ended before it wrote down how far it was.
  await trail.store.write(async ({ db }) => void (await db.deleteFrom('audit_positions').execute()));
  await trail.add('c');
  await trail.start().stop();
  assert.deepEqual(trail.seqs(), upTo(await trail.last()));

  truncateSync(trail.file, trail.raw().indexOf('"target":"c"'));
  const half = trail.raw().split('\n').at(-1) ?? '';
  await trail.store.write(async ({ db }) => void (await db.deleteFrom('audit_positions').execute()));
  await trail.start().stop();
  const whole = trail
    .raw()
    .split('\n')
    .slice(0, -1)
    .filter((line) => line !== half);
  assert.deepEqual(seqsOf(whole.map((line) => JSON.parse(line))), upTo(await trail.last()));
});

test('a file that cannot be written is in the log once, holds up nothing, and gets all when it can', async () => {
  await using trail = await withFile();
  mkdirSync(trail.file);
  const audit = trail.start();
  await trail.add('a');
  await eventually(
    async () => trail.events(),
    (events) => events.includes('audit.destination.failed'),
  );
  await trail.add('b');
  rmSync(trail.file, { recursive: true });
  appendFileSync(trail.file, 'not ours\n');
  await eventually(
    async () => trail.events(),
    (events) => events.includes('audit.destination.working'),
  );
  await audit.stop();
  const [first, ...rest] = trail.raw().split('\n').slice(0, -1);
  assert.equal(first, 'not ours');
  assert.deepEqual(seqsOf(rest.map((line) => JSON.parse(line))), upTo(await trail.last()));
  assert.equal(trail.events().filter((event) => event === 'audit.destination.failed').length, 1);
});

/** Listens as a syslog server does, and takes octet-counted messages. */
async function listenOn(port: number, server: Server) {
  const sockets: Socket[] = [];
  const messages: string[] = [];
  const take = (socket: Socket) => {
    sockets.push(socket);
    let text = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
      for (let frame = /^(\d+) /.exec(text); frame; frame = /^(\d+) /.exec(text)) {
        const end = frame[0].length + Number(frame[1]);
        if (text.length < end) return;
        messages.push(text.slice(frame[0].length, end));
        text = text.slice(end);
      }
    });
    socket.on('error', () => {});
  };
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    messages,
    take,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

const bodyOf = (message: string): Line => JSON.parse(message.slice(message.indexOf('{')));

for (const protocol of ['tcp', 'tls'] as const) {
  test(`a syslog server over ${protocol} gets each message once and in order, and goes on where it stopped`, async () => {
    await using trail = await openTrail();
    const [port = 0] = await freePorts(1);
    const authority = createAuthority();
    const listen = async () => {
      const server = protocol === 'tls' ? createTlsServer(authority.issue('server')) : createServer();
      const listener = await listenOn(port, server);
      server.on(protocol === 'tls' ? 'secureConnection' : 'connection', listener.take);
      return listener;
    };
    const ca = Buffer.from(authority.ca);
    const syslog = { protocol, host: '127.0.0.1', port, ca: protocol === 'tls' ? ca : undefined, ...limits };
    await trail.add(...upTo(150).map(String));
    const audit = startAudit({ ...config, syslog }, { ...trail, now: Date.now });
    await eventually(
      async () => trail.events(),
      (events) => events.includes('audit.destination.failed'),
    );

    const first = await listen();
    const before = await findLastSeq(trail.store.read);
    const has = (messages: string[], seq: number) => seqsOf(messages.map(bodyOf)).at(-1) === seq;
    await eventually(
      async () => first.messages,
      (messages) => has(messages, before),
    );
    assert.match(
      first.messages[0] ?? '',
      /^<110>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S+ andromeda \d+ audit-entry - \{"kind":"entry"/,
    );
    await eventually(
      async () => trail.events(),
      (events) => events.includes('audit.destination.working'),
    );
    assert.deepEqual(seqsOf(first.messages.map(bodyOf)), upTo(before));
    await first.close();

    await trail.add('while nobody listens');
    const second = await listen();
    const after = await findLastSeq(trail.store.read);
    await eventually(
      async () => second.messages,
      (messages) => has(messages, after),
    );
    await audit.stop();
    await eventually(
      async () => second.messages.map(bodyOf),
      (lines) => lines.at(-1)?.kind === 'head',
    );
    assert.deepEqual(seqsOf(second.messages.map(bodyOf)), upTo(after, before + 1));
    await second.close();
  });
}

test('a syslog server over TLS whose certificate is not to be trusted gets nothing', async () => {
  await using trail = await openTrail();
  const [port = 0] = await freePorts(1);
  const server = createTlsServer(createAuthority().issue('server'));
  const listener = await listenOn(port, server);
  server.on('secureConnection', listener.take);
  const ca = Buffer.from(createAuthority().ca);
  const syslog = { protocol: 'tls' as const, host: '127.0.0.1', port, ca, ...limits };
  await trail.add('secret');
  const audit = startAudit({ ...config, syslog }, { ...trail, now: Date.now });
  await eventually(
    async () => trail.events(),
    (events) => events.includes('audit.destination.failed'),
  );
  await audit.stop();
  assert.deepEqual(listener.messages, []);
  await listener.close();
});

test('a syslog server over UDP gets a datagram a message', async () => {
  await using trail = await openTrail();
  const socket = createSocket('udp4');
  const messages: string[] = [];
  socket.on('message', (message) => messages.push(message.toString('latin1')));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  await trail.add('a', 'b');
  const syslog = {
    protocol: 'udp' as const,
    host: '127.0.0.1',
    port: socket.address().port,
    ca: undefined,
    ...limits,
  };
  const audit = startAudit({ ...config, syslog }, { ...trail, now: Date.now });
  const last = await findLastSeq(trail.store.read);
  await eventually(
    async () => messages,
    (all) => seqsOf(all.map(bodyOf)).at(-1) === last,
  );
  await audit.stop();
  assert.deepEqual(seqsOf(messages.map(bodyOf)), upTo(last));
  socket.close();
});

test('a syslog server that does not read holds up neither writes nor the stop', async () => {
  await using trail = await openTrail();
  const server = createServer((socket) => socket.pause().on('error', () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const syslog = { protocol: 'tcp' as const, host: '127.0.0.1', port, ca: undefined, ...limits };
  const audit = startAudit({ ...config, syslog }, { ...trail, now: Date.now });
  for (let round = 0; round < 20; round++) await trail.add(...Array(500).fill('x'.repeat(200)));
  const started = performance.now();
  await audit.stop();
  assert.ok(performance.now() - started < 10_000);
  server.close();
});
