/**
 * The service's locks on its database. POSIX ends all locks that a process has on a file when it closes any descriptor of it
 * (https://sqlite.org/howtocorrupt.html): another program would then take itself for the only one, and remove the log of writes.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { program, runProgram } from '../support/program.ts';

const skip = process.platform === 'linux' ? false : '/proc/locks is there on Linux only';

test('the service keeps its locks on the database, whatever it and other commands do', {
  skip,
}, async (t) => {
  using directory = temporaryDirectory();
  const [platform, business, gateway, issuer] = await freePorts(4);
  const file = join(directory.path, 'andromeda.yaml');
  const dataDir = join(directory.path, 'data');
  const settings = {
    dataDir,
    platform: { listen: `127.0.0.1:${platform}` },
    business: { listen: `127.0.0.1:${business}` },
    gateway: { listen: `127.0.0.1:${gateway}` },
    identity: { embedded: { listen: `127.0.0.1:${issuer}` } },
  };
  writeFileSync(file, stringify(settings));
  const database = join(dataDir, 'andromeda.db');
  const isLocked = ({ pid }: ChildProcess) =>
    new RegExp(` ${pid} \\S+:${statSync(database).ino} `).test(readFileSync('/proc/locks', 'utf8'));
  const beside = async (...args: string[]) => {
    const { status, err } = await runProgram(...args, '--config', file);
    assert.equal(status, 0, err);
  };

  const first = await serve(t, file);
  assert.ok(isLocked(first.child), 'after a first start');
  await beside('service', 'reload');
  assert.ok(isLocked(first.child), 'after a reload');
  writeFileSync(file, stringify({ ...settings, audit: { file: directory.path } }));
  assert.equal((await runProgram('service', 'reload', '--config', file)).status, 1);
  assert.ok(isLocked(first.child), 'after a reload that is refused');
  writeFileSync(file, stringify(settings));
  await beside('check');
  await beside('backup', join(directory.path, 'by-hand'));
  await beside('admin', 'key', 'new', 'host');
  assert.ok(isLocked(first.child), 'after commands beside it');
  await first.stop();

  const second = await serve(t, file);
  assert.ok(isLocked(second.child), 'after a second start');
  // What an operator types who wants to see something: it must not end the service's log of writes.
  execFileSync(process.execPath, [
    ...['--input-type=module', '-e'],
    `import Database from 'better-sqlite3'; const d = new Database(${JSON.stringify(database)}); d.prepare('select 1').get(); d.close();`,
  ]);
  assert.ok(readdirSync(dataDir).includes('andromeda.db-wal'));
  await second.stop();
});

async function serve(t: TestContext, file: string) {
  const child = spawn(program, ['serve', '--config', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    log += part;
  });
  const closed = once(child, 'close');
  await eventually(
    async () => log,
    (text) => text.includes('"event":"serve.ready"'),
  );
  return {
    child,
    stop: () => {
      child.kill('SIGTERM');
      return closed;
    },
  };
}
