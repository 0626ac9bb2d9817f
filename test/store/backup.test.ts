import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { writeBackup } from '../../src/store/data-dir/backup.ts';
import { lockDataDir } from '../../src/store/data-dir/lock.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { restoreBackup, verifyBackup } from '../../src/store/data-dir/restore.ts';
import { listRows } from '../../src/store/engine/rows.ts';
import { createHostRecord } from '../../src/sync/slurm/host-record.ts';
import { physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import { limit } from '../support/limit.ts';
import { ancient } from '../support/schemas.ts';
import { loadAuditKey } from '../support/service-keys.ts';
import { openTestStore, userId } from '../support/store.ts';

const from = { madeAt: '2030-01-01T00:00:00.000Z', version: '9.9.9' };
const now = '2030-01-02T03:04:05.678Z';
const lab = { ...physics, clusters: [] };

/** A data directory with people in it and, where `mebibytes` says, a database of that size. */
async function installation(mebibytes = 0) {
  const opened = await openTestStore(lab);
  const { dataDir } = opened;
  const user = await userId(opened.store, 'ada@physics.example');
  await opened.store.close();
  mkdirSync(join(dataDir, 'keys'), { mode: 0o700 });
  mkdirSync(join(dataDir, 'clusters/c1/login/home/ada'), { recursive: true });
  for (const name of kept) writeFileSync(join(dataDir, name), `content of ${name}`, { mode: 0o600 });
  for (const name of ['keys/half.new', 'clusters/c1/login/home/ada/file', 'notes.txt'])
    writeFileSync(join(dataDir, name), 'not of the installation');
  if (mebibytes > 0) {
    const database = new Database(join(dataDir, 'andromeda.db'));
    database.exec('create table padding (content blob)');
    const insert = database.prepare('insert into padding values (randomblob(1048576))');
    for (let i = 0; i < mebibytes; i++) insert.run();
    database.close();
  }
  return { dataDir, user, [Symbol.dispose]: () => opened[Symbol.asyncDispose]() };
}

const kept = ['clusters/c1/login/host_key', 'issuer-keys.json', 'keys/host', 'keys/host.pub'];
const usual = ['andromeda.db', ...kept];
const filesIn = (directory: string) =>
  readdirSync(directory, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'lock')
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();

async function emails(dataDir: string): Promise<string[]> {
  const store = await openStore(dataDir);
  const rows = await listRows(store.read, 'users', { kind: 'person' });
  await store.close();
  return rows.map((row) => row.primary_email ?? '').sort();
}

test('a backup is enough to come back on a new machine: database, keys, nothing else, each readable by its owner', async () => {
  using old = await installation();
  using place = temporaryDirectory();
  const file = join(place.path, 'backup');
  const { bytes, missing } = await writeBackup(old.dataDir, file, from);
  assert.deepEqual(missing, []);
  assert.deepEqual(readdirSync(place.path), ['backup']);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(statSync(file).size, bytes);

  const dataDir = join(place.path, 'data');
  const { seal, ...restored } = restoreBackup(file, dataDir, now);
  assert.deepEqual(restored, { ...from, aside: undefined, elsewhere: [] });
  assert.equal(seal?.key, undefined);
  assert.deepEqual(filesIn(dataDir), usual);
  for (const name of kept) {
    assert.equal(readFileSync(join(dataDir, name), 'utf8'), `content of ${name}`);
    assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600);
  }
  assert.deepEqual(await emails(dataDir), await emails(old.dataDir));
  // The keys are where they belong, and no longer in the database.
  assert.ok(!readFileSync(join(dataDir, 'andromeda.db')).includes('content of'));
  assert.ok(readFileSync(file).includes('content of'));
});

test('which hosts of a Slurm cluster have accounts of ours is in a backup: they are cleaned after a restore, too', async () => {
  using old = await installation();
  using place = temporaryDirectory();
  const hostsIn = (dataDir: string) => createHostRecord(join(dataDir, 'clusters/c1/slurm/hosts.json'));
  const host = { address: 'a1:22', reach: { host: 'a1', port: 22 }, roles: new Set<never>(), nodes: ['a1'] };
  hostsIn(old.dataDir).add(host);
  writeFileSync(join(old.dataDir, 'clusters/c1/slurm/hosts.json.new'), 'half of it');
  await writeBackup(old.dataDir, join(place.path, 'backup'), from);
  const dataDir = join(place.path, 'data');
  restoreBackup(join(place.path, 'backup'), dataDir, now);
  assert.deepEqual(hostsIn(dataDir).left([]), [host]);
  assert.deepEqual(readdirSync(join(dataDir, 'clusters/c1/slurm')), ['hosts.json']);
});

test('files that lie in other directories are in it, and come back where they are missing or another, below the data directory', async () => {
  using place = temporaryDirectory();
  const at = (name: string) => join(place.path, name);
  const kubernetes = { kubeconfig: at('gamma.kubeconfig'), tokenFile: at('never-made') };
  const cluster = { name: 'gamma', organization: 'physics', scheduler: 'kubernetes' as const, kubernetes };
  await using opened = await openTestStore({ ...physics, clusters: [cluster] });
  await opened.store.close();
  writeFileSync(at('gamma.kubeconfig'), 'kind: Config');
  writeFileSync(at('andromeda.yaml'), 'dataDir: data');
  const elsewhere = [at('andromeda.yaml'), join(opened.dataDir, 'andromeda.db')];
  const { missing } = await writeBackup(opened.dataDir, at('backup'), { ...from, elsewhere });
  assert.deepEqual(missing, [at('never-made')]);

  assert.deepEqual(restoreBackup(at('backup'), at('same'), now).elsewhere, []);
  assert.ok(!existsSync(at('same/from-elsewhere')));
  rmSync(at('gamma.kubeconfig'));
  writeFileSync(at('andromeda.yaml'), 'dataDir: changed');
  const restored = restoreBackup(at('backup'), at('new'), now).elsewhere;
  const below = (name: string) => `${at('new/from-elsewhere')}${at(name)}`;
  assert.deepEqual(restored, [below('andromeda.yaml'), below('gamma.kubeconfig')]);
  assert.equal(readFileSync(below('gamma.kubeconfig'), 'utf8'), 'kind: Config');
  assert.equal(statSync(below('gamma.kubeconfig')).mode & 0o777, 0o600);
  assert.equal(readFileSync(at('andromeda.yaml'), 'utf8'), 'dataDir: changed');
});

test('writers go on while a backup is made, and it has a moment of which everything is there', async (t) => {
  using old = await installation(64);
  using place = temporaryDirectory();
  const script = fileURLToPath(new URL('./key-writer.ts', import.meta.url));
  const writer = spawn(process.execPath, [script, old.dataDir, old.user, 'run'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: limit(60_000),
  });
  t.after(() => writer.kill('SIGKILL'));
  let acknowledged = 0;
  const first = new Promise((resolve) => writer.stdout.once('data', resolve));
  writer.stdout.setEncoding('utf8').on('data', (text: string) => {
    acknowledged += text.split('\n').length - 1;
  });
  await first;
  const seen: { part: number; acknowledged: number }[] = [];
  const file = join(place.path, 'backup');
  const onProgress = (part: number) => seen.push({ part, acknowledged });
  await writeBackup(old.dataDir, file, { ...from, onProgress });
  const last = seen.at(-1)?.acknowledged ?? 0;
  assert.ok(last > (seen[0]?.acknowledged ?? 0), 'keys were registered between the first step and the last');
  // A copy that began anew at each write would have gone back.
  assert.deepEqual(
    fieldsOf(seen, 'part'),
    seen.map(({ part }) => part).sort((a, b) => a - b),
  );
  assert.ok(seen.length >= 15, 'in steps, between which this process did other things');

  const database = new Database(file, { readonly: true });
  const count = (table: string) => database.prepare(`select count(*) from ${table}`).pluck().get();
  assert.equal(count('commands'), count('audit_entries where command_id is not null'));
  assert.ok(Number(count('ssh_keys')) > 0);
  assert.equal(count('padding'), 64);
  database.close();
});

test('a restore keeps what was there before next to it, and can be undone with that', async () => {
  using old = await installation();
  using place = temporaryDirectory();
  const file = join(place.path, 'backup');
  await writeBackup(old.dataDir, file, from);
  writeFileSync(join(old.dataDir, 'keys/host'), 'another key');
  const store = await openStore(old.dataDir);
  await store.write((tx) => tx.db.updateTable('users').set({ display_name: 'changed' }).execute());
  await store.close();
  // As after kill -9: what the old database still had to take over must not be taken over by the new one.
  writeFileSync(join(old.dataDir, 'andromeda.db-wal'), 'of the old database');

  const { aside = '' } = restoreBackup(file, old.dataDir, now);
  assert.equal(aside, join(old.dataDir, 'before-restore-20300102T030405Z'));
  assert.deepEqual(filesIn(aside), ['andromeda.db', 'andromeda.db-wal', ...kept]);
  assert.equal(readFileSync(join(aside, 'keys/host'), 'utf8'), 'another key');
  assert.equal(readFileSync(join(old.dataDir, 'keys/host'), 'utf8'), 'content of keys/host');
  assert.ok(!existsSync(join(old.dataDir, 'andromeda.db-wal')));
  const names = (path: string) => {
    const database = new Database(join(path, 'andromeda.db'), { readonly: true });
    const all = database.prepare<[], string>('select display_name from users').pluck().all();
    database.close();
    return all;
  };
  assert.ok(!names(old.dataDir).includes('changed'));
  assert.equal(statSync(aside).mode & 0o777, 0o700);
});

test('a restore is refused while the service runs, and changes nothing', async () => {
  using old = await installation();
  using place = temporaryDirectory();
  const file = join(place.path, 'backup');
  await writeBackup(old.dataDir, file, from);
  const before = filesIn(old.dataDir);
  const unlock = lockDataDir(old.dataDir);
  assert.throws(() => restoreBackup(file, old.dataDir, now), {
    code: 'invalid_state',
    message: `Andromeda serves from ${old.dataDir}. Stop it first; nothing was changed.`,
  });
  unlock?.();
  assert.deepEqual(filesIn(old.dataDir), before);
});

test('what is no whole backup of this version is not restored, and is not left behind', async () => {
  using old = await installation(1);
  using place = temporaryDirectory();
  const good = join(place.path, 'good');
  await writeBackup(old.dataDir, good, from);
  const bytes = readFileSync(good);
  const file = join(place.path, 'file');
  const edited = (statement: string) => {
    writeFileSync(file, bytes);
    const database = new Database(file);
    database.exec(statement);
    database.close();
  };
  const refused = (says: RegExp | string, what: string) => {
    const data = join(place.path, 'data');
    assert.throws(() => restoreBackup(file, data, now), { code: 'invalid_request', message: says }, what);
    assert.deepEqual(filesIn(data), [], what);
  };
  const overwritten = Buffer.from(bytes).fill(0xff, 4096 * 3, 4096 * 5);
  for (const [says, ...contents] of [
    ['is not a backup of Andromeda.', 'no backup', '', readFileSync(join(old.dataDir, 'andromeda.db'))],
    ['is damaged; take another backup.', bytes.subarray(0, bytes.length - 4096 * 20), overwritten],
  ] as const) {
    for (const [index, content] of contents.entries()) {
      writeFileSync(file, content);
      refused(`${file} ${says}`, `${says} ${index}`);
    }
  }
  for (const [statement, says] of [
    ["insert into kysely_migration values ('9999-later', '2099-01-01')", /a newer version of Andromeda; /],
    [ancient, /a version of Andromeda before 0\.3\.0, which this one cannot read; restore it with that/],
  ] as const) {
    edited(statement);
    refused(says, statement);
  }
  for (const path of ['../outside', '/../x', 'keys/../../outside', 'keys//x', '', 'andromeda.db', 'lock']) {
    // With a manifest that fits, and nothing that signed it.
    edited(
      `insert into backup_files values ('${path}', x'00');
       update backup_info set key = null, signature = null,
         manifest = json_set(manifest, '$.parts."file ${path}"', '${hash('sha256', Buffer.of(0))}')`,
    );
    refused(/./, path);
    assert.ok(!existsSync(join(place.path, 'outside')));
  }
});

test('one changed bit in what a backup holds is refused, and the part is named', async () => {
  using old = await installation();
  using place = temporaryDirectory();
  const key = loadAuditKey(old.dataDir);
  const good = join(place.path, 'good');
  await writeBackup(old.dataDir, good, from);
  const { seal } = restoreBackup(good, join(place.path, 'data'), now);
  assert.equal(seal?.key, key.publicKey);
  assert.ok(seal.parts > 40);

  const file = join(place.path, 'file');
  const changed = async (says: string, change: (database: Database.Database) => void) => {
    writeFileSync(file, readFileSync(good));
    const database = new Database(file);
    change(database);
    database.close();
    const data = join(place.path, 'other');
    const message = `${file} was changed after it was made (${says}); take another backup.`;
    assert.throws(() => restoreBackup(file, data, now), { code: 'invalid_request', message });
    assert.throws(() => verifyBackup(file), { code: 'invalid_request', message });
    assert.deepEqual(filesIn(data), []);
  };
  await changed('file issuer-keys.json', () => {
    const bytes = readFileSync(good);
    const at = bytes.indexOf('content of issuer-keys.json');
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    writeFileSync(file, bytes);
  });
  for (const [says, statement] of [
    ['table staff_permissions', "update staff_permissions set permission = 'staff.opesate'"],
    [
      'file keys/host',
      "update backup_files set content = cast('content of keys/hosu' as blob) where path = 'keys/host'",
    ],
    [
      'file keys/x, file keys/host.pub',
      "update backup_files set path = 'keys/x' where path = 'keys/host.pub'",
    ],
    ['schema', 'drop index ssh_keys_by_user'],
    // The time decides what is the newest.
    ['the manifest', "update backup_info set made_at = '2031-01-01'"],
    ['the manifest', 'update backup_info set manifest = null, key = null, signature = null'],
    [
      'the signature of its manifest is wrong',
      `update backup_info set manifest = replace(manifest, '"table users":', '"table losers":')`,
    ],
    ['the signature of its manifest is wrong', 'update backup_info set signature = null'],
  ] as const)
    await changed(says, (database) => database.exec(statement));
});

test('a backup replaces an older one whole, and nothing else, and leaves nothing behind when it cannot be made', async () => {
  using old = await installation();
  using place = temporaryDirectory();
  const file = join(place.path, 'file');
  writeFileSync(file, 'dear diary');
  const message = `${file} is there and is not a backup; give another name.`;
  await assert.rejects(writeBackup(old.dataDir, file, from), { code: 'invalid_request', message });
  assert.equal(readFileSync(file, 'utf8'), 'dear diary');

  const backup = join(place.path, 'backup');
  await writeBackup(old.dataDir, backup, from);
  await writeBackup(old.dataDir, backup, { ...from, version: '9.9.10' });
  assert.equal(restoreBackup(backup, join(place.path, 'data'), now).version, '9.9.10');

  const signal = AbortSignal.abort(new Error('enough'));
  const before = readFileSync(backup);
  await assert.rejects(writeBackup(old.dataDir, backup, { ...from, signal }), { message: 'enough' });
  assert.ok(readFileSync(backup).equals(before));
  const link = join(place.path, 'link');
  symlinkSync('backup', link);
  await writeBackup(old.dataDir, link, { ...from, version: '9.9.11' });
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.equal(restoreBackup(backup, join(place.path, 'data'), now).version, '9.9.11');
  rmSync(link);
  await assert.rejects(writeBackup(old.dataDir, join(place.path, 'no/where'), from), {
    message: `${join(place.path, 'no/where')} cannot be written: the directory it should be in does not exist.`,
  });
  await assert.rejects(writeBackup(place.path, backup, from), {
    code: 'not_found',
    message: `There is no database in ${place.path}; nothing to back up.`,
  });
  assert.deepEqual(readdirSync(place.path).sort(), ['backup', 'data', 'file']);
});

test('a restore that is killed leaves the old database or the new one, and the same command does the rest', async () => {
  using old = await installation(24);
  using place = temporaryDirectory();
  const file = join(place.path, 'backup');
  await writeBackup(old.dataDir, file, from);
  const dataDir = join(place.path, 'data');
  restoreBackup(file, dataDir, now);
  const people = await emails(old.dataDir);
  const script = fileURLToPath(new URL('./restorer.ts', import.meta.url));
  for (let round = 0; round < 3; round++) {
    const child = spawn(process.execPath, [script, file, dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: limit(60_000),
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.stdout.once('data', () => setTimeout(() => child.kill('SIGKILL'), Math.random() * 120));
    await ended;
    const database = new Database(join(dataDir, 'andromeda.db'));
    assert.equal(database.pragma('integrity_check', { simple: true }), 'ok');
    assert.equal(database.prepare('select count(*) from padding').pluck().get(), 24);
    database.close();
  }
  restoreBackup(file, dataDir, now);
  assert.deepEqual(await emails(dataDir), people);
  assert.ok(!existsSync(join(dataDir, '.restore')));
});

test('what a killed backup has left behind is removed by the next one', async () => {
  using old = await installation();
  using place = temporaryDirectory();
  const file = join(place.path, 'backup');
  const gone = spawn('true');
  await new Promise((resolve) => gone.once('close', resolve));
  const mine = `backup.${process.pid}.part-journal`;
  const theirs = [`backup.${gone.pid}.part`, `backup.${gone.pid}.part-wal`];
  for (const name of [...theirs, mine, 'backupx1.part', 'backup.part'])
    writeFileSync(join(place.path, name), 'x');
  await writeBackup(old.dataDir, file, from);
  const left = readdirSync(place.path).sort();
  assert.deepEqual(
    left.filter((name) => name !== mine),
    ['backup', 'backup.part', 'backupx1.part'],
  );
});
