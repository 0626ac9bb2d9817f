/** A first start on a tenth of a processor: it takes its time, and nothing on the way gives up. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { heard } from '../support/heard.ts';
import { program } from '../support/program.ts';

const share = 0.1;
const periodUs = 100_000;
/** By where control groups are mounted (cgroups(7), version 1 and 2): the file for the quota, and what it takes. */
const kinds = [
  { mount: '/sys/fs/cgroup/cpu', file: 'cpu.cfs_quota_us', quota: `${share * periodUs}`, none: '-1' },
  { mount: '/sys/fs/cgroup', file: 'cpu.max', quota: `${share * periodUs} ${periodUs}`, none: 'max' },
];

/** A control group that gets this share of one processor; undefined where this machine or account has none. */
function makeGroup() {
  for (const { mount, file, quota, none } of kinds) {
    const group = join(mount, `andromeda-slow-${process.pid}`);
    try {
      mkdirSync(group);
    } catch {
      continue;
    }
    try {
      writeFileSync(join(group, file), quota);
      return { group, lift: () => writeFileSync(join(group, file), none) };
    } catch {
      rmdirSync(group);
    }
  }
  return undefined;
}

test('the demonstration starts on a tenth of a processor', async (t) => {
  const made = makeGroup();
  if (made === undefined) return t.skip('this account cannot set a quota for processors');
  const { group, lift } = made;
  using directory = temporaryDirectory();
  // In a network of its own: its ports are those of the README, which another test may have.
  const inside = 'ip link set lo up && echo $$ > "$0" && exec "$@"';
  const command = [program, 'serve', '--demo', '--data', join(directory.path, 'data')];
  const prefix = ['--net', '--', 'sh', '-c', inside, join(group, 'cgroup.procs')];
  const child = spawn('unshare', [...prefix, ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: directory.path,
  });
  const said = heard(child.stdout, child.stderr);
  const closed = once(child, 'close');
  try {
    await becomes(() => said().includes('Try it') || child.exitCode !== null, true);
    assert.match(said(), /Try it/);
  } finally {
    // What ends it is to be quick again.
    lift();
    child.kill('SIGTERM');
    await closed;
    await eventually(
      async () => {
        try {
          rmdirSync(group);
          return true;
        } catch {
          return false;
        }
      },
      (isGone) => isGone,
    );
  }
});
