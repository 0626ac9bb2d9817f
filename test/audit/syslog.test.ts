/** The audit trail over TLS to syslog servers: one of our own that reads RFC 5425 to the letter and fails, and rsyslog. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { startAudit } from '../../src/service/audit/index.ts';
import { findLastSeq } from '../../src/store/audit/audit.ts';
import { eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { entriesOf, type Line, startSyslog, upTo } from './receivers.ts';
import { openTrail } from './support.ts';

const rsyslogd = '/usr/sbin/rsyslogd';
const hasRsyslog = existsSync(rsyslogd) && existsSync('/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so');
const authority = createAuthority();

type Trail = Awaited<ReturnType<typeof openTrail>>;

function start(trail: Trail, port: number, timeoutMs = 1_000) {
  const { cert, key } = authority.issue({ name: 'andromeda', group: 'service' });
  const client = { cert: Buffer.from(cert), key: Buffer.from(key) };
  const to = { protocol: 'tls' as const, host: 'localhost', port, ca: Buffer.from(authority.ca) };
  const syslog = { ...to, client, timeoutMs };
  const config = { signMs: 3_600_000, file: undefined, webhook: undefined, syslog };
  return startAudit(config, { ...trail, now: Date.now });
}

async function reaches(lines: () => Line[], seq: number): Promise<void> {
  await eventually(
    async () => entriesOf(lines()).at(-1),
    (sent) => sent === seq,
  );
}

/** How a server can fail before it has read to the end. */
const troubles: Record<string, (socket: TLSSocket) => void> = {
  'does not read': (socket) => void socket.pause(),
  'reads and never closes': (socket) => void socket.resume(),
  'closes the connection half-way': (socket) => void socket.once('data', () => socket.destroy()),
  'closes at once': (socket) => void socket.end(),
};

test('each trouble of a syslog server is in the log once, and what was not read to the end comes again', {
  concurrency: 4,
}, async (t) => {
  const recovers = async (behave: (socket: TLSSocket) => void) => {
    await using trail = await openTrail();
    const { cert, key } = authority.issue('server');
    await using server = await startSyslog({ cert, key, ca: authority.ca, requestCert: true });
    await trail.add(...upTo(300).map((index) => `${index} ${'x'.repeat(150)}`));
    server.behave = behave;
    const audit = start(trail, server.port);
    await eventually(
      async () => server.connections,
      (count) => count >= 2,
    );
    server.behave = server.read;
    const last = await findLastSeq(trail.store.read);
    await reaches(() => server.lines, last);
    await audit.stop();
    assert.deepEqual(entriesOf(server.lines), upTo(last));
    const head = server.lines.at(-1);
    assert.deepEqual([head?.kind, head?.seq], ['head', last]);
    assert.deepEqual([...new Set(server.names)], ['andromeda']);
    assert.equal(trail.events().filter((event) => event === 'audit.destination.failed').length, 1);
  };
  await Promise.all(Object.entries(troubles).map(([name, behave]) => t.test(name, () => recovers(behave))));
});

/** rsyslog with TLS from Debian, which wants our certificate, and writes what it gets as it came. */
async function startRsyslog(directory: string, port: number): Promise<ChildProcess> {
  const { cert, key } = authority.issue('server');
  const at = (name: string) => join(directory, name);
  mkdirSync(at('work'), { recursive: true });
  writeFileSync(at('ca.pem'), authority.ca);
  writeFileSync(at('cert.pem'), cert);
  writeFileSync(at('key.pem'), key);
  const config = `
global(maxMessageSize="64k" workDirectory="${at('work')}" defaultNetstreamDriver="gtls"
  defaultNetstreamDriverCAFile="${at('ca.pem')}" defaultNetstreamDriverCertFile="${at('cert.pem')}"
  defaultNetstreamDriverKeyFile="${at('key.pem')}")
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="x509/name"
  permittedPeer=["andromeda"])
template(name="raw" type="string" string="%rawmsg%\\n")
input(type="imtcp" address="127.0.0.1" port="${port}")
action(type="omfile" file="${at('messages')}" template="raw")
`;
  writeFileSync(at('rsyslog.conf'), config);
  const child = spawn(rsyslogd, ['-n', '-f', at('rsyslog.conf'), '-i', at('pid')], { stdio: 'inherit' });
  await eventually(
    async () => existsSync(at('pid')),
    (started) => started,
  );
  return child;
}

function linesIn(file: string): Line[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'latin1').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line.slice(line.indexOf('{'))));
}

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  await once(child, 'exit');
}

test('rsyslog over TLS has every entry once and in order, stopped and started in between', {
  skip: !hasRsyslog && 'rsyslog and rsyslog-gnutls are not installed',
}, async () => {
  await using trail = await openTrail();
  using place = temporaryDirectory();
  const [port = 0] = await freePorts(1);
  const lines = () => linesIn(join(place.path, 'messages'));
  await trail.add(...upTo(400).map(String));
  const audit = start(trail, port, 10_000);
  for (let round = 0; round < 3; round++) {
    const server = await startRsyslog(place.path, port);
    await trail.add(`round ${round}`);
    await reaches(lines, await findLastSeq(trail.store.read));
    // Confirmed as well, or it would be sent again, as it should.
    await eventually(
      () => trail.store.read.selectFrom('audit_positions').select('entry_seq').executeTakeFirst(),
      (position) => position?.entry_seq === entriesOf(lines()).at(-1),
    );
    if (round === 2) await audit.stop();
    await end(server);
    await trail.add(`while it is away ${round}`);
  }
  assert.deepEqual(entriesOf(lines()), upTo((await findLastSeq(trail.store.read)) - 1));
});
