/**
 * The service's locks on its database. POSIX ends all locks that a process has on a file when it closes any descriptor of it
 * (https://sqlite.org/howtocorrupt.html): another program would then take itself for the only one, and remove the log of writes.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../support/directory.ts';
import { runProgram } from '../support/program.ts';
import { serve, writeSettings } from '../support/service-process.ts';

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
