/** `andromeda serve` on bad days: every fault is one sentence and a proper exit status, never a stack trace. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { temporaryDirectory } from '../support/directory.ts';
import { listening } from '../support/ports.ts';
import { runProgram } from '../support/program.ts';
import { damageTable } from '../support/schemas.ts';
import { serve, writeSettings } from '../support/service-process.ts';

/** It ends with that status, and the last line of its log says why. Every line is JSON. */
async function isRefused(file: string, sentence: RegExp, status = 78): Promise<void> {
  await using service = serve(file);
  assert.equal(await service.ended, status, service.log());
  for (const line of service.log().trimEnd().split('\n')) JSON.parse(line);
  const failed = service.events('serve.failed');
  assert.deepEqual([failed.length, failed[0]?.['level'], failed[0]?.['status']], [1, 'error', status]);
  assert.match(String(failed[0]?.['message']), sentence);
  assert.doesNotMatch(service.log(), /\bat .*:\d+:\d+|node_modules/, 'no stack trace');
}

test('a port in use is named, and which part wanted it', async () => {
  using directory = temporaryDirectory();
  const { file, gateway, platform } = await writeSettings(directory.path);
  for (const [port, sentence] of [
    [platform, /Platform API cannot start: 127\.0\.0\.1:\d+ is in use/],
    [gateway, /SSH gateway cannot start: 127\.0\.0\.1:\d+ is in use/],
  ] as const) {
    const other = createServer();
    await listening(other, port);
    try {
      await isRefused(file, sentence, 69);
    } finally {
      await new Promise((done) => other.close(done));
    }
  }
});

test('a configuration that is missing or wrong, its seed, and a data directory that cannot be made are named', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  await isRefused(at('nothing.yaml'), /nothing\.yaml: there is no such file/);
  const { file, write } = await writeSettings(directory.path, { sink: {} });
  await isRefused(file, /andromeda\.yaml:\d+: sink is not a setting/);
  write({ seed: './lab.yaml' });
  writeFileSync(at('lab.yaml'), 'organizations: [{ slug: a, name: A, members: [] }]');
  await isRefused(file, /lab\.yaml:1: Organization a needs an owner/);
  assert.ok(!existsSync(at('data/andromeda.db')), 'nothing was made');
  write({ dataDir: './lab.yaml' });
  await isRefused(file, /data directory .* cannot be made/);
});

test('SIGTERM stops it although connections are open, and it says so; a data directory in use, of a newer version or damaged, is left alone', async () => {
  using directory = temporaryDirectory();
  const { file, business, gateway } = await writeSettings(directory.path);
  await using service = serve(file);
  await service.until('serve.ready');
  await isRefused((await writeSettings(directory.path)).file, /Another Andromeda serves from/);

  const [asking, silent] = [business, gateway].map((port) => connect(port, '127.0.0.1'));
  for (const socket of [asking, silent]) socket?.on('error', () => {});
  asking?.write('GET /me HTTP/1.1\r\nhost: x\r\n');
  await new Promise((done) => silent?.once('data', done));
  assert.equal(await service.stop(), 0, service.log());
  assert.match(service.log(), /"Stopping \(SIGTERM\)…"[\s\S]*"Stopped\."\}\n$/);
  for (const line of service.log().trimEnd().split('\n')) JSON.parse(line);
  for (const socket of [asking, silent]) socket?.destroy();

  const database = new Database(join(directory.path, 'data/andromeda.db'));
  database.exec("insert into kysely_migration values ('9999-from-the-future', '2030-01-01T00:00:00Z')");
  await isRefused(file, /written by a newer version/);
  database.exec("delete from kysely_migration where name like '9999%'");
  database.close();
  for (const table of ['counters', 'kysely_migration']) {
    damageTable(join(directory.path, 'data/andromeda.db'), table);
    await isRefused(file, /database .*is damaged.*(restore a backup|backup has to be restored)/);
  }
});

const skip = process.platform === 'linux' ? false : '/proc/locks is there on Linux only';

test('the service keeps its locks on the database, whatever it and other commands do', {
  skip,
}, async () => {
  using directory = temporaryDirectory();
  const { file, write } = await writeSettings(directory.path);
  const dataDir = join(directory.path, 'data');
  const database = join(dataDir, 'andromeda.db');
  const isLocked = ({ pid }: ChildProcess) =>
    new RegExp(` ${pid} \\S+:${statSync(database).ino} `).test(readFileSync('/proc/locks', 'utf8'));
  const beside = async (...args: string[]) => {
    const { status, err } = await runProgram(...args, '--config', file);
    assert.equal(status, 0, err);
  };

  await using first = serve(file);
  await first.until('serve.ready');
  assert.ok(isLocked(first.child), 'after a first start');
  await beside('service', 'reload');
  assert.ok(isLocked(first.child), 'after a reload');
  write({ audit: { file: directory.path } });
  assert.equal((await runProgram('service', 'reload', '--config', file)).status, 1);
  assert.ok(isLocked(first.child), 'after a reload that is refused');
  write();
  await beside('check');
  await beside('backup', join(directory.path, 'by-hand'));
  await beside('admin', 'key', 'new', 'host');
  assert.ok(isLocked(first.child), 'after commands beside it');
  await first.stop();

  await using second = serve(file);
  await second.until('serve.ready');
  assert.ok(isLocked(second.child), 'after a second start');
  // What an operator types who wants to see something: it must not end the service's log of writes.
  execFileSync(process.execPath, [
    ...['--input-type=module', '-e'],
    `import Database from 'better-sqlite3'; const d = new Database(${JSON.stringify(database)}); d.prepare('select 1').get(); d.close();`,
  ]);
  assert.ok(readdirSync(dataDir).includes('andromeda.db-wal'));
  await second.stop();
});
