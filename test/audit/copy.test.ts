/** The copy of the trail in a file, complete and in order whatever becomes of the file or the service; and its signed heads. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createServer } from 'node:tls';
import { headText, isSignedHead, makeAuditKey, parseAuditKey } from '../../src/domain/audit/audit.ts';
import { withNext } from '../../src/domain/key-rotation.ts';
import { addHead, findLastSeq, listHeads } from '../../src/store/audit/audit.ts';
import { listKeptFiles } from '../../src/store/data-dir/backup-file.ts';
import { readKeyFiles, writeKeyFiles } from '../../src/store/data-dir/key-files.ts';
import { insertRow } from '../../src/store/engine/rows.ts';
import { becomes, eventually, physics, startTestApp } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { openTrail, rewrite, startAudit } from './support.ts';

type Line = { kind: string; seq: number; target?: string };

async function withFile(group?: number) {
  const trail = await openTrail();
  const file = join(trail.dataDir, 'trail.jsonl');
  const raw = () => readFileSync(file, 'utf8');
  const last = () => findLastSeq(trail.store.read);
  return {
    ...trail,
    file,
    raw,
    last,
    seqs: () => seqsOf(raw()),
    start: (store = trail.store) =>
      startAudit({ signMs: 3_600_000, file, group }, { ...trail, store, now: Date.now }),
    logged: (event: string) =>
      eventually(
        async () => trail.events(),
        (events) => events.includes(event),
      ),
    mode: () => (statSync(file).mode & 0o777).toString(8),
    /** Until the file ends with the trail's last entry. */
    async caughtUp() {
      const seq = await last();
      await becomes(() => (existsSync(file) ? seqsOf(raw()) : []).at(-1), seq);
    },
  };
}

function linesOf(text: string): Line[] {
  const lines = text.split('\n').slice(0, -1);
  // Behind what syslog puts before it.
  return lines.map((line) => JSON.parse(line.slice(line.indexOf('{'))));
}

function seqsOf(text: string): number[] {
  return linesOf(text).flatMap(({ kind, seq }) => (kind === 'entry' ? seq : []));
}

function upTo(last: number, from = 1): number[] {
  return Array.from({ length: last - from + 1 }, (_, index) => from + index);
}

test('a file has every entry once and in order, with the signed heads, as lines of ASCII', async () => {
  await using trail = await withFile();
  await trail.add(...upTo(700).map(String));
  const audit = trail.start();
  await trail.add('later');
  await audit.stop();
  assert.deepEqual(trail.seqs(), upTo(await trail.last()));
  const head = linesOf(trail.raw()).at(-1);
  assert.deepEqual([head?.kind, head?.seq], ['head', await trail.last()]);
  assert.match(trail.raw(), /^[\x20-\x7e\n]+$/);
  assert.match(trail.raw(), /"reason":"Zo\\u00eb\\u202e"/);
});

test('its owner may read it, or a group too, whatever the umask is and however the file was made', async (t) => {
  const before = process.umask(0o077);
  t.after(() => process.umask(before));
  // Root may give a file to any group, and others to theirs.
  const group = process.getuid?.() === 0 ? 4711 : (process.getgroups?.().at(-1) ?? assert.fail());
  await using trail = await withFile(group);
  await trail.add('a');
  await trail.start().stop();
  assert.deepEqual([trail.mode(), statSync(trail.file).gid], ['640', group]);
  renameSync(trail.file, `${trail.file}.1`);
  process.umask(0);
  await trail.add('b');
  await trail.start().stop();
  assert.deepEqual([trail.mode(), statSync(trail.file).gid], ['640', group]);

  await using other = await withFile();
  appendFileSync(other.file, '');
  chmodSync(other.file, 0o664);
  await other.start().stop();
  assert.equal(other.mode(), '600');
});

/** Has root be somebody without groups. */
function asNobody(): Disposable {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  return { [Symbol.dispose]: () => void (isRoot && process.seteuid?.(0)) };
}

test('where it cannot be given to the group, its owner alone may read it, and it says so', async () => {
  await using trail = await withFile(1);
  chmodSync(trail.dataDir, 0o777);
  await trail.add('a');
  using _ = asNobody();
  const audit = trail.start();
  await trail.logged('audit.file.failed');
  const { message } = audit.faults().copy ?? assert.fail();
  assert.match(message, /cannot be set: it must belong to the service's account, which must be in the group/);
  assert.deepEqual([trail.mode(), trail.raw()], ['600', '']);
  await audit.stop();
});

test('a file that was moved away is begun anew behind what it had', async () => {
  await using trail = await withFile();
  const audit = trail.start();
  await trail.add('a');
  const before = await trail.last();
  await trail.caughtUp();
  renameSync(trail.file, `${trail.file}.1`);
  await trail.add('b', 'c');
  await audit.stop();
  assert.deepEqual(trail.seqs(), upTo(await trail.last(), before + 1));
  // So it is while no service runs.
  rmSync(trail.file);
  const after = await trail.last();
  await trail.add('d');
  await trail.start().stop();
  assert.deepEqual(trail.seqs(), upTo(await trail.last(), after + 1));
});

test('after a crash nothing is there twice, and a line that was cut is there again, whole', async () => {
  await using trail = await withFile();
  await trail.add('a', 'b');
  await trail.start().stop();
  // As if the service had ended before it wrote down how far it was.
  await trail.store.write(async ({ db }) => void (await db.deleteFrom('audit_copies').execute()));
  await trail.add('c');
  await trail.start().stop();
  assert.deepEqual(trail.seqs(), upTo(await trail.last()));

  truncateSync(trail.file, trail.raw().indexOf('"target":"c"'));
  const half = trail.raw().split('\n').at(-1) ?? '';
  await trail.store.write(async ({ db }) => void (await db.deleteFrom('audit_copies').execute()));
  await trail.start().stop();
  assert.deepEqual(seqsOf(trail.raw().replace(`${half}\n`, '')), upTo(await trail.last()));
});

test('a file that cannot be written is in the log once, holds up nothing, and gets all when it can', async () => {
  await using trail = await withFile();
  mkdirSync(trail.file);
  const audit = trail.start();
  await trail.add('a');
  await trail.logged('audit.file.failed');
  assert.match(audit.faults().copy?.message ?? '', /EISDIR/);
  await trail.add('b');
  rmSync(trail.file, { recursive: true });
  appendFileSync(trail.file, 'not ours\n');
  await trail.logged('audit.file.working');
  assert.equal(audit.faults().copy, undefined);
  await audit.stop();
  assert.match(trail.raw(), /^not ours\n/);
  assert.deepEqual(seqsOf(trail.raw().replace('not ours\n', '')), upTo(await trail.last()));
  assert.equal(trail.events().filter((event) => event === 'audit.file.failed').length, 1);
});

test('what a power cut could take back is not copied before it is on disk', async () => {
  await using trail = await withFile();
  const copied: boolean[] = [];
  const write: typeof trail.store.write = async (body, options) => {
    const result = await trail.store.write(body, options);
    // Such a write is for the disk only.
    if (body.length === 0) copied.push(trail.raw().includes('"target":"a"'));
    return result;
  };
  await trail.add('a');
  await trail.start({ ...trail.store, write }).stop();
  assert.deepEqual([copied[0], trail.raw().includes('"target":"a"')], [false, true]);
});

test('a service that is killed again and again loses nothing, and writes nothing twice', async () => {
  await using trail = await withFile();
  await trail.store.close();
  const size = () => statSync(trail.file, { throwIfNoEntry: false })?.size ?? 0;
  for (let round = 0; round < 2; round++) {
    const before = size();
    const child = startWriter(trail);
    await becomes(() => size() > before + round * 400, true);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  const child = startWriter(trail);
  const [[last]] = await Promise.all([once(child.stdout as never, 'data'), child.stdin?.end()]);
  await once(child, 'exit');
  // Of a line that was cut, the whole is behind it.
  const whole = trail.raw().replaceAll(/^(.+)\n(?=\1)/gm, '');
  assert.deepEqual(seqsOf(whole), upTo(Number(last)));
});

/** Writes entries and copies them, until it is killed, or its stdin ends: then it prints the number of the last one. */
function startWriter({ dataDir, file }: { dataDir: string; file: string }): ChildProcess {
  const script = join(import.meta.dirname, 'trail-writer.ts');
  return spawn(process.execPath, [script, dataDir, file], { stdio: ['pipe', 'pipe', 'inherit'] });
}

const rsyslogd = '/usr/sbin/rsyslogd';
const hasRsyslog = existsSync(rsyslogd) && existsSync('/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so');

test('with the lines of docs/audit.md, rsyslog sends every entry once and in order, the file moved away and itself stopped in between', {
  skip: !hasRsyslog && 'rsyslog and rsyslog-gnutls are not installed',
}, async (t) => {
  await using trail = await withFile();
  const authority = createAuthority();
  let received = '';
  const server = createServer(authority.issue('server'), (socket) => {
    socket.setEncoding('utf8').on('data', (text: string) => {
      received += text;
    });
  });
  t.after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const at = (name: string) => join(trail.dataDir, name);
  mkdirSync(at('work'));
  writeFileSync(at('ca.pem'), authority.ca);
  const page = readFileSync(join(import.meta.dirname, '../../docs/audit.md'), 'utf8');
  const lines = page.match(/(?:^ {4}.*\n)+/gm)?.find((block) => block.includes('imfile')) ?? assert.fail();
  const config = lines
    .replace('/etc/rsyslog.d/logs-ca.pem', at('ca.pem'))
    .replace('/var/log/andromeda/audit.jsonl', trail.file)
    .replaceAll('logs.example.org', 'localhost')
    .replace('port="6514"', `port="${port}"`);
  writeFileSync(at('rsyslog.conf'), `global(workDirectory="${at('work')}")\n${config}\n`);
  const startRsyslog = () => {
    const child = spawn(rsyslogd, ['-n', '-f', at('rsyslog.conf'), '-i', at('pid')], { stdio: 'inherit' });
    t.after(() => child.kill('SIGKILL'));
    return child;
  };
  const arrived = async () => {
    const last = await trail.last();
    await becomes(() => seqsOf(received).at(-1) === last, true);
  };

  const audit = trail.start();
  await trail.add(...upTo(300).map((index) => `${index} ${'x'.repeat(200)}`));
  for (const round of [1, 2]) {
    await trail.add(`while it is away, ${round}`);
    const rsyslog = startRsyslog();
    await arrived();
    renameSync(trail.file, `${trail.file}.${round}`);
    await trail.add(`moved away, ${round}`);
    await arrived();
    rsyslog.kill('SIGTERM');
    await once(rsyslog, 'exit');
  }
  await audit.stop();
  assert.deepEqual(seqsOf(received), upTo(await trail.last()));
});

const config = { signMs: 3_600_000, file: undefined, group: undefined };
const keyFile = 'keys/audit_ed25519.pem';

test('the key of an installation is made once, for its owner only, and is a part of its backups', async () => {
  await using trail = await openTrail();
  const deps = { ...trail, now: Date.now };
  const [first] = startAudit(config, deps).publicKeys();
  assert.deepEqual(startAudit(config, deps).publicKeys(), [first]);
  assert.equal(statSync(join(trail.dataDir, keyFile)).mode & 0o777, 0o600);
  assert.ok(listKeptFiles(trail.dataDir).includes(keyFile));
});

test('heads are signed at intervals while entries come, on demand, and at the end', async () => {
  await using trail = await openTrail();
  const audit = startAudit({ ...config, signMs: 20 }, { ...trail, now: Date.now });
  const heads = () => listHeads(trail.store.read, { after: 0, limit: 1000 });
  await trail.add('a');
  const first = await findLastSeq(trail.store.read);
  await eventually(heads, (list) => list.at(-1)?.seq === first);
  await trail.add('b');
  const head = await audit.sign();
  assert.equal(head?.seq, first + 1);
  assert.ok(head && isSignedHead(head) && head.key === audit.publicKeys()[0]);
  assert.deepEqual(await audit.sign(), head, 'what is signed is not signed again');
  assert.ok(!isSignedHead({ ...head, seq: head.seq + 1 }), 'a signature is of one head only');
  assert.equal(headText(head), `andromeda audit head\n${head.seq}\n${head.hash}\n${head.at}\n`);
  await trail.add('c');
  await audit.stop();
  assert.equal((await heads()).at(-1)?.seq, first + 2);
});

test('a trail that was computed again is not signed, neither by the same process nor by the next one', async () => {
  await using trail = await openTrail();
  const deps = { ...trail, now: Date.now };
  await trail.add('a', 'b', 'c');
  const audit = startAudit(config, deps);
  const before = await audit.sign();
  await rewrite(trail.dataDir, (before?.seq ?? 0) - 1);
  await trail.add('d');
  await assert.rejects(audit.sign(), /was rewritten or cut: entry \d+ is not the one that was signed/);
  await audit.stop();
  const next = startAudit(config, deps);
  await assert.rejects(next.sign(), /was rewritten or cut/);
  await next.stop();
  assert.ok(trail.events().includes('audit.sign.failed'));
  assert.deepEqual((await listHeads(trail.store.read, { after: 0, limit: 10 })).at(-1), before);
});

test('a thousand heads are kept', async () => {
  await using trail = await openTrail();
  await trail.store.write(async ({ db }) => {
    for (let seq = 1; seq <= 1000; seq++)
      await insertRow(db, 'audit_heads', { seq, hash: 'h', at: 't', key: 'k', signature: 's' });
  });
  const another = { seq: 1001, hash: 'h', at: 't', key: 'k', signature: 's' };
  await addHead(trail.store, another);
  const heads = await listHeads(trail.store.read, { after: 0, limit: 2000 });
  assert.deepEqual([heads.length, heads[0]?.seq, heads.at(-1)], [1000, 2, another]);
});

test('who may read the trail sees the key and the heads, and has the present one signed', async () => {
  await using service = await startTestApp({
    lab: { ...physics, users: [{ email: 'otto@physics.example', staff: ['staff.audit'] }] },
  });
  const head = await service.business('/operator/audit/head', { as: 'otto' });
  assert.equal(head.status, 200);
  assert.ok(isSignedHead(head.body));
  const { body } = await service.business('/operator/audit/heads', { as: 'otto' });
  assert.equal(body.key, head.body.key);
  assert.deepEqual(body.heads.at(-1), head.body);
  for (const path of ['/operator/audit/head', '/operator/audit/heads'])
    assert.equal((await service.business(path, { as: 'ada' })).status, 403);
  await rewrite(`${service.dataDir}/data`, 1);
  assert.equal((await service.business('/operator/audit/head', { as: 'otto' })).status, 409);
});

test('a key that takes the place of another goes on with what that one signed, which counts on', async () => {
  await using trail = await openTrail();
  const { store, dataDir, add } = trail;
  await add('a', 'b');
  const before = await startAudit(config, { ...trail, now: Date.now }).sign();
  const [former = ''] = startAudit(config, { ...trail, now: Date.now }).publicKeys();
  const text = readKeyFiles(dataDir, 'audit')?.key ?? '';
  const next = makeAuditKey({ text, title: 'the key', stolen: false });
  const put = (days: number) => {
    const start = Date.now() - days * 86_400_000;
    writeKeyFiles(dataDir, 'audit', withNext({ key: text }, next, 30, start));
    return startAudit(config, { ...trail, now: Date.now });
  };
  const { publicKey } = parseAuditKey(next, 'it');
  assert.deepEqual(put(1).publicKeys(), [former, publicKey]);
  await add('c');
  assert.equal((await put(1).sign())?.key, former);
  for (const days of [16, 31]) {
    await add('d');
    const audit = put(days);
    assert.deepEqual(audit.publicKeys(), [publicKey, former], 'also when the key itself is gone');
    const head = await audit.sign();
    assert.equal(head?.key, publicKey);
    assert.ok(head && isSignedHead(head));
  }
  // What the former signed is not forgotten: a trail that was rewritten since is not signed anew.
  await rewrite(dataDir, before?.seq ?? 0);
  await store.write(async ({ db }) => {
    await db.deleteFrom('audit_heads').where('key', '=', publicKey).execute();
  });
  await assert.rejects(put(31).sign(), /The audit trail was rewritten or cut: entry/);
});
