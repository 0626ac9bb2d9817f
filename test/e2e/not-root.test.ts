/** Simulated login nodes of a service that is not root: only where somebody says that they may be. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { stringify } from 'yaml';
import { physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { program } from '../support/program.ts';
import { writeSettings } from '../support/service-process.ts';
import { unless } from '../support/unless.ts';

const ordinary = 30_113;
const isRoot = process.getuid?.() === 0;
const drop = isRoot ? ['setpriv', `--reuid=${ordinary}`, `--regid=${ordinary}`, '--clear-groups', '--'] : [];
const readable = !isRoot || spawnSync('setpriv', [...drop.slice(1), 'test', '-x', program]).status === 0;
const test = unless(readable ? false : 'an ordinary user cannot read this checkout');

/** Serves a lab with a simulated Slurm cluster; resolves with the log when a line of it is as wanted. */
async function logUntil(t: TestContext, directory: string, wanted: RegExp, more: object = {}) {
  const { file } = await writeSettings(directory, { seed: 'lab.yaml', ...more });
  writeFileSync(join(directory, 'lab.yaml'), stringify(physics));
  chmodSync(directory, 0o755);
  if (isRoot) for (const path of [directory, file]) chownSync(path, ordinary, ordinary);
  const [command = '', ...args] = [...drop, program, 'serve', '--config', file];
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: directory },
  });
  t.after(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  let log = '';
  for await (const part of child.stderr.setEncoding('utf8')) {
    log += part;
    if (wanted.test(log)) break;
  }
  child.kill('SIGTERM');
  // Its directory goes next, and what it still wrote would be left behind.
  await exited;
  assert.match(log, wanted);
  return log;
}

test('without root a simulated login node is not started, in words in the log and in the condition', async (t) => {
  using directory = temporaryDirectory();
  const log = await logUntil(t, directory.path, /"sync\.refused".*\n/);
  for (const event of ['simulated.login_node_refused', 'sync.refused']) {
    const line = log.split('\n').find((one) => one.includes(`"${event}"`));
    assert.match(line ?? '', /"alpha".*not root.*clusters\.unsafeSimulatedLogins: true/);
  }
  assert.doesNotMatch(log, /simulated\.applied.*"alpha"/);
});

test('clusters.unsafeSimulatedLogins has it all the same, with a warning', async (t) => {
  using directory = temporaryDirectory();
  const clusters = { unsafeSimulatedLogins: true };
  const log = await logUntil(t, directory.path, /"simulated\.applied","cluster":"alpha"/, { clusters });
  assert.match(log, /"warn".*"simulated\.unsafe","cluster":"alpha".*not root/);
  assert.doesNotMatch(log, /refused/);
});
