/** Where homes are made: by a file server, by a command of the site; and what is said where root cannot make them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkSlurmSettings } from '../../src/domain/slurm/settings.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { oneHost } from './one-host.ts';
import { person } from './people.ts';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);

const noNamespaces =
  spawnSync('unshare', ['-m', '-u', '-p', '-f', 'true']).status !== 0 && 'this machine allows no namespaces';
const noFuse =
  noNamespaces ||
  (!existsSync('/dev/fuse') && 'this machine has no FUSE') ||
  (spawnSync('/usr/bin/python3', ['-c', 'import fusepy']).status !== 0 && 'python3-fusepy is not installed');

/** For `oneHost`: /home is this directory, in which root has the rights of uid 65534. */
function squashed(source: string): string {
  const mount = `/usr/bin/python3 ${join(import.meta.dirname, 'root-squash.py')} ${source} /home`;
  return `{ ${mount} & } && until [ "$(stat -f -c %T /home)" = fuseblk ]; do sleep 0.02; done`;
}

const reach = { host: '127.0.0.1', hostKey: 'ssh-ed25519 AAAA' };

test('a file server makes homes and hands them over, and no other host tries', {
  skip: noNamespaces,
}, async () => {
  using exported = temporaryDirectory();
  const homes = { ...reach, path: exported.path };
  using server = oneHost(['homes'], { homes });
  using login = oneHost(['login', 'controller'], { homes });
  const facts = await server.apply([ada]);
  assert.deepEqual([facts.problems, facts.conflicts, facts.drift], [[], [], []]);
  const made = statSync(join(exported.path, 'ada'));
  assert.deepEqual([made.uid, made.gid, made.mode & 0o777], [30_001, 30_001, 0o700]);
  // The server looks up the groups of a number (manage-gids). No person may log in there.
  assert.equal(await server.shell('getent passwd ada | cut -d: -f6,7'), '/home/ada:/usr/sbin/nologin');
  const atLogin = await login.apply([ada]);
  assert.deepEqual([atLogin.problems, atLogin.drift], [[], []]);
  assert.equal(await login.shell('ls -A /home; id -u ada'), '30001');

  chownSync(join(exported.path, 'ada'), 1_500, 1_500);
  mkdirSync(join(exported.path, 'bob'), { mode: 0o777 });
  const [conflict] = (await server.apply([ada, bob])).conflicts;
  assert.match(conflict?.message ?? '', new RegExp(`^${exported.path}/ada belongs to the uid 1500`));
  rmSync(join(exported.path, 'ada'), { recursive: true });
  assert.match((await server.observe()).drift.join(), /what stood in the way of ada is gone/);
  const again = await server.apply([ada, bob]);
  assert.deepEqual([again.conflicts.map(({ username }) => username), again.drift], [['bob'], []]);
});

test('where root has no rights in /home, the fault names the settings that help', {
  skip: noFuse,
}, async () => {
  using exported = temporaryDirectory();
  using login = oneHost(['login'], {}, squashed(exported.path));
  const message = 'root cannot make homes in /home here (root_squash?): set homes or commands.makeHome';
  // Where others can write to /home, it can make directories, and cannot hand them over.
  for (const mode of [0o755, 0o1777]) {
    chmodSync(exported.path, mode);
    const { problems } = await login.apply([ada, bob]);
    assert.deepEqual(problems, [{ kind: 'home', message }], mode.toString(8));
    assert.deepEqual(readdirSync(exported.path), []);
  }
  using exporting = oneHost(['homes'], { homes: { ...reach, path: exported.path } });
  assert.deepEqual((await exporting.apply([ada, bob])).problems, []);
  const { problems, drift } = await login.apply([ada, bob]);
  assert.deepEqual([problems, drift], [[], []], 'a home that is there is used');
  assert.match(
    await login.shell('ls /home/ada 2>&1; su ada -c "cd && pwd"'),
    /Permission denied\n\/home\/ada$/,
  );
});

test('a command makes homes once each, and its failure is that of one person', {
  skip: noNamespaces,
}, async () => {
  const makeHome = `[ {username} != bob ] || [ -e /var/lib/space ] || { echo no space; exit 3; }
    echo {username} {uid} {gid} >> /var/lib/made`;
  using controller = oneHost(['controller'], { commands: { makeHome } });
  using login = oneHost(['login'], { commands: { makeHome } });
  assert.deepEqual((await login.apply([ada])).problems, []);
  assert.equal(await login.shell('ls -A /home'), '');
  await controller.shell('install -d -o 30003 -g 30003 -m 700 /home/cy');
  const people = [ada, bob, person('cy', 30_003)];
  const first = await controller.apply(people);
  assert.deepEqual([first.problems, first.settled?.generation], [[], 1], 'the list is in force');
  const message = 'the home of bob cannot be made: makeHome ended with 3: no space ';
  assert.deepEqual(first.conflicts, [{ userId: 'user_30002', username: 'bob', message }]);
  assert.equal((await controller.observe()).drift.join(), 'a home is not made', 'it is tried again');
  await controller.shell('touch /var/lib/space');
  const second = await controller.apply(people);
  assert.deepEqual([second.conflicts, second.drift], [[], []]);
  assert.equal(controller.file('var/made'), 'ada 30001 30001\nbob 30002 30002\n', 'once each; cy has a home');
});

test('homes in the lab file are checked', () => {
  const cluster = (path: string, more = {}) => ({
    login: [{ name: 'login1', ...reach }],
    controller: reach,
    manage: { identityFile: '/etc/key' },
    homes: { ...reach, path, ...more },
  });
  checkSlurmSettings('beta', cluster('/export/home'));
  for (const path of ['export', '/', '/a b', '/a/../b', '/a/']) {
    assert.throws(() => checkSlurmSettings('beta', cluster(path)), /homes needs the absolute path/, path);
  }
  const keyless = cluster('/export/home', { hostKey: undefined });
  assert.throws(() => checkSlurmSettings('beta', keyless), /the host of homes needs its hostKey/);
});
