/** A gateway process may do next to nothing: an account of its own, no capabilities, no new privileges. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { whyNot } from '../lab.ts';
import { openProcessLab } from './lab.ts';

const account = 'nobody';
const drop = ['--reuid=65534', '--regid=65534', '--clear-groups', '--'];
const readable =
  whyNot === false &&
  spawnSync('setpriv', [...drop, process.execPath, 'src/main.ts', '--version']).status === 0;
const skip = whyNot || (readable ? false : 'nobody cannot read this checkout');

test('as another account: it holds no rights and no key where others see it, and sessions survive the service all the same', {
  skip,
  timeout: 60_000,
}, async () => {
  // The lab's directory is 0700 and root's: the way to the socket does not lead through it.
  await using lab = await openProcessLab({ account });
  const first = await lab.serve();
  const [pid = 0] = lab.gateways();
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => new RegExp(`^${name}:[\\t ]*(.*)$`, 'm').exec(status)?.[1];
  assert.deepEqual(['Uid', 'Gid'].map(field), Array(2).fill('65534\t65534\t65534\t65534'));
  assert.deepEqual([field('Groups')?.trim(), field('NoNewPrivs')], ['', '1']);
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    assert.match(field(set) ?? '', /^0+$/);
  const key = readFileSync(join(lab.dir, 'host'), 'utf8').split('\n')[1] ?? '';
  const shown = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
  assert.ok(shown.every((text) => !text.includes(key)));
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await first.kill('SIGKILL');
  const second = await lab.serve();
  assert.deepEqual(lab.gateways(), [pid]);
  assert.equal((await lab.ssh(['echo in'])).out, 'in\n');
  await second.kill('SIGTERM');
});

test('nothing of the service is open in it: no database, no output, and no code of either is loaded', {
  skip: whyNot,
  timeout: 60_000,
}, async () => {
  await using lab = await openProcessLab();
  const service = await lab.serve();
  const [pid = 0] = lab.gateways();
  const open = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
  assert.deepEqual(
    open.filter((path) => path.startsWith(lab.dir)),
    [join(lab.dir, 'data/run')],
  );
  const output = readlinkSync(`/proc/${service.pid}/fd/2`);
  assert.ok(!open.includes(output), 'who waits for the end of the service does not wait for it');
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
  assert.match(maps, /sshcrypto\.node/);
  assert.doesNotMatch(maps, /better-sqlite3/);
  await service.kill('SIGTERM');
});

test('an account that does not exist is refused in words', { skip: whyNot, timeout: 60_000 }, async () => {
  await using lab = await openProcessLab({ account: 'nobody-by-this-name' });
  await assert.rejects(
    lab.serve(),
    /gateway\.account is nobody-by-this-name, and this host has no such account/,
  );
});
