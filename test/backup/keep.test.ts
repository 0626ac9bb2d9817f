/** A backup to where it is kept: a directory or S3, read back, and the oldest removed. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import Database from 'better-sqlite3';
import { keepBackup } from '../../src/service/backup/keep.ts';
import { newestFirst, tooMany } from '../../src/service/backup/names.ts';
import { listBackups } from '../../src/service/backup/obtain.ts';
import { openBucket } from '../../src/service/backup/s3.ts';
import type { BackupStorage, KeepSettings } from '../../src/service/backup/storage.ts';
import { readKeptBackup, readLastBackup } from '../../src/store/data-dir/last-backup.ts';
import { restoreBackup } from '../../src/store/data-dir/restore.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { type Fault, type S3Server, s3Bucket, s3Key, s3Region, startS3Server } from '../support/s3-server.ts';
import { openTestStore } from '../support/store.ts';

const version = '9.9.9';
const limits = { quietMs: 20_000, sendMs: 20_000, retryMs: 1, partBytes: 64 * 1024 };

/** A data directory and a place for its backups beside it. */
async function installation(mebibytes = 0) {
  await using opened = await openTestStore();
  const directory = temporaryDirectory();
  const dataDir = join(directory.path, 'data');
  await opened.store.close();
  execFileSync('cp', ['-a', opened.dataDir, dataDir]);
  if (mebibytes > 0) {
    const database = new Database(join(dataDir, 'andromeda.db'));
    database.exec('create table padding (content blob)');
    for (let i = 0; i < mebibytes; i++) database.exec('insert into padding values (randomblob(1048576))');
    database.close();
  }
  const place = join(directory.path, 'place');
  mkdirSync(place);
  return {
    path: directory.path,
    dataDir,
    place,
    recipient: await identityToRecipient(await generateIdentity()),
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  };
}

type Installation = Awaited<ReturnType<typeof installation>>;

/** Keeps one that was made in a given minute. */
function keep(
  { dataDir }: Installation,
  settings: Partial<KeepSettings> & Pick<KeepSettings, 'to'>,
  minute = 0,
  more: { storage?: BackupStorage; signal?: AbortSignal; onProgress?(part: number): void } = {},
) {
  const madeAt = `2030-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`;
  return keepBackup({
    settings: { keep: 3, encryptTo: [], ...settings },
    dataDir,
    madeAt,
    version,
    elsewhere: [],
    ...more,
  });
}

function bucketOf(server: S3Server, { path }: Installation, secret = s3Key.secretAccessKey) {
  const credentials = join(path, 'credentials');
  writeFileSync(
    credentials,
    `[default]\naws_access_key_id = ${s3Key.accessKeyId}\naws_secret_access_key = ${secret}\n`,
    { mode: 0o600 },
  );
  const settings = { bucket: s3Bucket, prefix: 'gpu/', endpoint: server.endpoint, region: s3Region };
  return { ...settings, credentials, ca: undefined };
}

/** What of a backup may be left where it is made. */
const leftIn = (dataDir: string) => readdirSync(join(dataDir, 'backup-work'));

test('backups in a directory: verified, noted, and of ours only the newest stay', async () => {
  using own = await installation();
  const to = { directory: own.place };
  const foreign = 'andromeda-000000000000-20200101T000000Z.backup';
  for (const name of [foreign, 'notes.txt', 'andromeda-x.backup']) writeFileSync(join(own.place, name), 'x');
  const kept = [];
  for (const minute of [1, 2, 3, 4]) kept.push(await keep(own, { to }, minute));
  assert.deepEqual(
    kept.map(({ removed }) => removed),
    [0, 0, 0, 1],
  );
  const last = kept.at(-1);
  assert.match(last?.file ?? '', /\/andromeda-[0-9a-f]{12}-20300101T000400Z\.backup$/);
  const there = readdirSync(own.place);
  assert.equal(there.length, 6, String(there));
  for (const name of [foreign, 'notes.txt', 'andromeda-x.backup']) assert.ok(there.includes(name));
  assert.ok(!there.some((name) => name.includes('T000100Z')));
  const { bytes, file } = last ?? {};
  assert.deepEqual(readLastBackup(own.dataDir), { at: '2030-01-01T00:04:00.000Z', file, bytes });
  assert.equal(readKeptBackup(own.dataDir)?.storage, own.place);
  assert.deepEqual(leftIn(own.dataDir), []);
  const restored = restoreBackup(file ?? '', join(own.path, 'restored'), '2030-01-02T00:00:00.000Z');
  assert.equal(restored.madeAt, '2030-01-01T00:04:00.000Z');
  // The installation that comes back goes on with its own backups.
  const id = (dataDir: string) => readFileSync(join(dataDir, 'backup-id.json'), 'utf8');
  assert.equal(id(join(own.path, 'restored')), id(own.dataDir));
});

test('never the last good one: names from a clock that was ahead do not push it out', () => {
  const id = '0123456789ab';
  const name = (year: number) => `andromeda-${id}-${year}0101T000000Z.backup`;
  const stored = [2031, 2032, 2033, 2020].map((year) => ({ name: name(year), bytes: 1 }));
  assert.deepEqual(tooMany(stored, { id, keep: 2, good: name(2020) }), [name(2032), name(2031)]);
  assert.deepEqual(tooMany(stored, { id, keep: 1, good: name(2020) }).length, 3);
  assert.deepEqual(tooMany(stored, { id: 'ffffffffffff', keep: 1, good: 'none' }), []);
  assert.deepEqual(newestFirst([...stored, { name: 'else', bytes: 1 }])[0]?.name, name(2033));
});

test('what was killed is swept away, and nothing half counts', async () => {
  using own = await installation(16);
  const to = { directory: own.place };
  const ending = new AbortController();
  const parts: string[] = [];
  const interrupted = keep(own, { to }, 1, {
    signal: ending.signal,
    onProgress: () => {
      parts.push(...readdirSync(join(own.dataDir, 'backup-work/content')));
      ending.abort();
    },
  });
  await assert.rejects(interrupted, { name: 'AbortError' });
  assert.ok(parts.length > 0);
  assert.deepEqual([readdirSync(own.place), leftIn(own.dataDir)], [[], []]);
  assert.equal(readLastBackup(own.dataDir), undefined);
  // As after kill -9: a copy, and a part of what was being written.
  const { id } = JSON.parse(readFileSync(join(own.dataDir, 'backup-id.json'), 'utf8'));
  mkdirSync(join(own.dataDir, 'backup-work/content'), { recursive: true });
  writeFileSync(join(own.dataDir, 'backup-work/content/copy.1.part'), 'secret');
  writeFileSync(join(own.place, `.andromeda-${id}-20300101T000100Z.backup.part`), 'half');
  await keep(own, { to }, 2);
  assert.deepEqual(leftIn(own.dataDir), []);
  assert.deepEqual(readdirSync(own.place).length, 1);
});

test('a directory that cannot be used is one sentence, and what is damaged is not kept', async () => {
  using own = await installation(4);
  await assert.rejects(keep(own, { to: { directory: join(own.path, 'none') } }), {
    message: `${join(own.path, 'none')} does not exist. Make the directory, or mount what it lies on.`,
  });
  const bytes = readFileSync(join(own.dataDir, 'andromeda.db'));
  bytes.fill(0x55, bytes.length / 2, bytes.length / 2 + 8192);
  writeFileSync(join(own.dataDir, 'andromeda.db'), bytes);
  await assert.rejects(keep(own, { to: { directory: own.place } }), {
    message: /is damaged, so no backup was written/,
  });
  assert.deepEqual([readdirSync(own.place), leftIn(own.dataDir)], [[], []]);
});

test('backups in S3: signed, in parts, read back, the oldest removed, and an upload that was killed given up', async () => {
  using own = await installation();
  await using server = await startS3Server();
  const to = bucketOf(server, own);
  const settings = { to, encryptTo: [own.recipient], keep: 7 };
  const workDir = join(own.dataDir, 'backup-work');
  const more = { storage: await openBucket(to, { workDir, limits }) };
  server.objects.set('gpu/andromeda-notes', Buffer.from('x'));
  server.objects.set('other', Buffer.from('x'));
  server.uploads.set('upload-9', new Map());
  mkdirSync(workDir);
  writeFileSync(join(workDir, 'upload.json'), JSON.stringify({ key: 'gpu/k', uploadId: 'upload-9' }));
  const { file, bytes } = await keep(own, settings, 0, more);
  assert.match(file, /^s3:\/\/backups\/gpu\/andromeda-[0-9a-f]{12}-20300101T000000Z\.backup\.age$/);
  const stored = server.objects.get(file.slice('s3://backups/'.length));
  assert.equal(stored?.length, bytes);
  assert.match(stored?.toString('latin1', 0, 40) ?? '', /^age-encryption\.org\/v1\n-> /);
  assert.equal(server.uploads.size, 0);
  assert.equal(
    server.requests.filter((one) => /partNumber/.test(one)).length,
    Math.ceil(bytes / limits.partBytes),
  );
  // More than one page of the list, and two that are not ours.
  const [name = ''] = file.split('/').slice(-1);
  for (let minute = 10; minute < 18; minute++)
    server.objects.set(`gpu/${name.replace('T000000Z', `T00${minute}00Z`)}`, Buffer.from('x'));
  const { removed } = await keep(own, settings, 20, more);
  assert.equal(removed, 3);
  assert.equal(server.objects.size, 7 + 2);
  assert.ok(!server.objects.has(`gpu/${name}`));
});

test('storage that fails: words, nothing half, and the older backups stay', async (t) => {
  using own = await installation();
  await using server = await startS3Server();
  const to = bucketOf(server, own);
  const settings = { to, encryptTo: [own.recipient], keep: 1 };
  await keep(own, settings, 0);
  const before = [...server.objects.keys()];
  const attempt = async (request: RegExp, fault: Fault, message: RegExp) => {
    const workDir = join(own.dataDir, 'backup-work');
    server.fault = (one) => (request.test(one) ? fault : undefined);
    const waits = fault === 'silent' ? { ...limits, sendMs: 100 } : limits;
    const storage = await openBucket(to, { workDir, limits: waits });
    await assert.rejects(keep(own, settings, 1, { storage }), { message });
    server.fault = () => undefined;
    assert.deepEqual([...server.objects.keys()], before);
    assert.equal(server.uploads.size, 0);
    assert.equal(readLastBackup(own.dataDir)?.at, '2030-01-01T00:00:00.000Z');
  };
  const at = `The storage at ${server.endpoint} \\(bucket backups\\)`;
  const cases: [string, RegExp, Fault, RegExp][] = [
    [
      '403',
      /^PUT .*partNumber/,
      403,
      RegExp(`^${at} refused with 403, AccessDenied: the key may not do that there\\.`),
    ],
    [
      '500',
      /^PUT .*partNumber/,
      500,
      RegExp(`^${at} refused with 500, InternalError: it is out of order\\.$`),
    ],
    ['500 at the end', /^POST .*uploadId/, 500, /refused with 500/],
    [
      'no answer',
      /^PUT .*partNumber/,
      'silent',
      RegExp(`^${at} cannot be used: it does not answer in time\\.$`),
    ],
    [
      'a connection that is cut within a part',
      /^PUT .*partNumber/,
      'reset',
      /cannot be used: it closed the connection/,
    ],
    ['a connection that is cut while it is read back', /^GET \/backups\/gpu/, 'reset', /cannot be used: /],
    ['other bytes than were written', /^GET \/backups\/gpu/, 'corrupt', /what was read back is not the same/],
  ];
  for (const [name, request, fault, message] of cases)
    await t.test(name, () => attempt(request, fault, message));
  await t.test('500 once is asked again', async () => {
    let failures = 0;
    server.fault = (one) => (/partNumber/.test(one) && failures++ === 0 ? 500 : undefined);
    await keep(own, settings, 2, { storage: await openBucket(to, { workDir: own.dataDir, limits }) });
    assert.equal(server.objects.size, 1);
  });
  await t.test('removing is refused: the backup is as good, and it is said', async () => {
    server.fault = (one) => (/^DELETE .*T000200Z/.test(one) ? 403 : undefined);
    const { notRemoved } = await keep(own, settings, 3);
    assert.match(notRemoved ?? '', /refused with 403, AccessDenied/);
    assert.equal(server.objects.size, 2);
  });
});

test('a wrong key, a file that others can read, a host that is not there: one sentence each', async () => {
  using own = await installation();
  await using server = await startS3Server();
  const settings = { encryptTo: [own.recipient] };
  await assert.rejects(keep(own, { ...settings, to: bucketOf(server, own, 'wrong') }), {
    message:
      /refused with 403, SignatureDoesNotMatch: the secret of the key is wrong\. Look at backup\.s3\.credentials\.$/,
  });
  const to = bucketOf(server, own);
  await assert.rejects(keep(own, { ...settings, to: { ...to, region: 'mars' } }), {
    message: /Set backup\.s3\.region/,
  });
  await assert.rejects(keep(own, { ...settings, to: { ...to, bucket: 'none' } }), {
    message: /bucket does not exist|no bucket/,
  });
  server.fault = () => 'page';
  await assert.rejects(listBackups(to, own.dataDir), { message: /is no S3: it sent something else/ });
  server.fault = () => undefined;
  const [port = 0] = await freePorts(1);
  const elsewhere = (endpoint: string) => keep(own, { ...settings, to: { ...to, endpoint } });
  await assert.rejects(elsewhere(`http://127.0.0.1:${port}`), {
    message: /cannot be used: nothing listens there\.$/,
  });
  await assert.rejects(elsewhere(server.endpoint.replace('http', 'https')), {
    message: /cannot be used: .*(SSL|TLS|wrong version)/,
  });
  chmodSync(to.credentials, 0o640);
  await assert.rejects(keep(own, { ...settings, to }), {
    message: `backup.s3.credentials: ${to.credentials} can be read by others. chmod 600 ${to.credentials}`,
  });
  assert.ok(!existsSync(join(own.dataDir, 'last-backup')));
});
