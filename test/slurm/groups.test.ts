/** Groups with fixed numbers on a host: made or adopted, their members, and what stays the site's. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ManifestGroup } from '../../src/domain/organizations/membership.ts';
import { oneHost } from './one-host.ts';
import { person } from './people.ts';

const skip =
  spawnSync('unshare', ['-m', '-u', '-p', '-f', 'true']).status !== 0 && 'this machine allows no namespaces';

const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const vision = (...members: string[]): ManifestGroup => ({ name: 'vision', gid: 5_003, members });

type OneHost = ReturnType<typeof oneHost>;

/** The group's line in group and in gshadow. */
const linesOf = (host: OneHost, name: string) =>
  ['group', 'gshadow'].map((file) => {
    const lines = host.file(`etc/${file}`).split('\n');
    return lines.filter((line) => line.startsWith(`${name}:`)).join(' and ');
  });

test('a group is made with its number, and its members follow the list', { skip }, async () => {
  using host = oneHost(['login']);
  const before = [host.file('etc/group'), host.file('etc/gshadow')];
  const facts = await host.apply([ada, bob], [], [vision('ada', 'eve')]);
  assert.deepEqual([facts.problems, facts.faults, facts.drift], [[], [], []]);
  assert.deepEqual(
    linesOf(host, 'vision'),
    ['vision:x:5003:ada', 'vision:!::ada'],
    'who has no account is in no group',
  );
  assert.equal(await host.shell('id -Gn ada'), 'ada vision');
  await host.apply([ada, bob], [], [vision('bob', 'ada')]);
  assert.deepEqual(linesOf(host, 'vision'), ['vision:x:5003:ada,bob', 'vision:!::ada,bob']);

  // One who leaves is out of it with the pass that locks them.
  await host.apply([ada], [], [vision('ada', 'bob')]);
  assert.equal(linesOf(host, 'vision')[0], 'vision:x:5003:ada');
  assert.equal(await host.shell(`awk -F: '$1 == "bob" { print $8 }' /etc/shadow`), '1');

  // A team that ended is removed, with its number.
  await host.apply([ada], [], []);
  assert.deepEqual(linesOf(host, 'vision'), ['', '']);
  await host.release();
  assert.deepEqual([host.file('etc/group'), host.file('etc/gshadow')], before);
});

test('a group that is there with this name and number is adopted, and handed back', { skip }, async () => {
  using host = oneHost(['login']);
  await host.shell('useradd -M carol; useradd -M dan; groupadd -g 5003 vision; gpasswd -M carol,dan vision');
  const before = linesOf(host, 'vision');
  await host.apply([ada, bob], [], [vision('bob')]);
  assert.deepEqual(linesOf(host, 'vision'), ['vision:x:5003:carol,dan,bob', 'vision:!::carol,dan,bob']);
  // Other members are the site's, before and after.
  await host.shell('gpasswd -d dan vision; gpasswd -a ada vision');
  assert.deepEqual((await host.observe()).drift, ['groups are not as they should be']);
  const mended = await host.apply([ada, bob], [], [vision('bob')]);
  assert.deepEqual([mended.drift, linesOf(host, 'vision')[0]], [[], 'vision:x:5003:carol,bob']);
  await host.shell('gpasswd -a dan vision');
  await host.release();
  assert.deepEqual(linesOf(host, 'vision').sort(), before.sort());
});

test('a group that is another is a fault, and nothing of it changes', { skip }, async () => {
  using host = oneHost(['login']);
  await host.shell(
    'groupadd -g 6000 vision; groupadd -g 5004 other; echo "%hpc ALL=(ALL) ALL" > /etc/sudoers.d/hpc',
  );
  const before = host.file('etc/group');
  const groups = [
    vision('ada'),
    { name: 'speech', gid: 5_004, members: ['ada'] },
    { name: 'hpc', gid: 5_005, members: ['ada'] },
    { name: 'robots', gid: 5_006, members: ['ada'] },
  ];
  const facts = await host.apply([ada], [], groups);
  const faults = [
    'the group vision (gid 6000) is there already and does not have the gid 5003',
    'the gid 5004 of the group speech belongs to the group other',
    'the group hpc is not made, as sudoers names it',
  ];
  assert.deepEqual([facts.faults, facts.drift, facts.settled?.generation], [faults, [], 1]);
  assert.equal(host.file('etc/group'), `${before}ada:x:30001:\nrobots:x:5006:ada\n`);
  // Once nothing is in the way any more, it is made without another change.
  await host.shell('groupdel vision');
  assert.deepEqual((await host.observe()).drift, ['groups are not as they should be']);
  const again = await host.apply([ada], [], groups);
  assert.deepEqual([again.faults, linesOf(host, 'vision')[0]], [faults.slice(1), 'vision:x:5003:ada']);
  // A number that changed by hand is not changed back: files have the other one by now.
  await host.shell('groupmod -g 7000 robots');
  const changed = await host.apply([ada], [], groups);
  assert.match(changed.faults.join(), /the group robots \(gid 7000\) is there already/);
  await host.release();
  assert.deepEqual(linesOf(host, 'vision'), ['', '']);
  assert.equal(linesOf(host, 'robots')[0], 'robots:x:7000:', 'not ours any more');
});

test('on a host whose people come from a directory, groups are looked up and not made', {
  skip,
}, async () => {
  using host = oneHost(['login'], {}, 'true', 'directory');
  await host.shell('groupadd -g 5003 vision; groupadd -g 6004 speech');
  const before = host.file('etc/group');
  const groups = ['vision:5003', 'speech:5004', 'robots:5005'].map((one) => {
    const [name = '', gid] = one.split(':');
    return { name, gid: Number(gid), members: ['ada'] };
  });
  const facts = await host.apply([ada], [], groups);
  assert.deepEqual(facts.faults, ['the directory has the gid 6004 for the group speech, and not 5004']);
  assert.match(facts.notices.join(), /robots \(gid 5005\) is not in the directory, or that does not answer/);
  assert.equal(host.file('etc/group'), before);
});

test('killed before any of its writes, the next pass has all of it, and other members stay', {
  skip,
}, async () => {
  // The programs that write a file, each of which kills all when it is called for the nth time.
  const shim = `[ ! -e /var/lib/kill ] || { echo >> /var/lib/calls; [ "$(wc -l < /var/lib/calls)" -lt "$(cat /var/lib/kill)" ] || kill -9 -1; }`;
  const make = ['mv', 'sync'].map(
    (one) => `printf '#!/bin/sh\n%s\nexec /bin/${one} "$@"\n' '${shim}' > /run/${one}`,
  );
  const prepare = `${make.join(' && ')} && chmod 755 /run/mv /run/sync && export PATH=/run:$PATH`;
  using host = oneHost(['login'], {}, prepare, 'files', 'sh -s');
  await host.shell(
    'useradd -M carol; groupadd -g 5003 vision; gpasswd -a carol vision; groupadd -g 5009 old',
  );
  await host.apply([ada, bob], [], []);
  const speech: ManifestGroup = { name: 'speech', gid: 5_004, members: ['bob'] };
  const wanted = ['vision:x:5003:carol,ada', 'vision:!::carol,ada', 'speech:x:5004:bob', 'speech:!::bob'];
  for (let n = 1; ; n += 1) {
    rmSync(join(host.directory, 'var/calls'), { force: true });
    writeFileSync(join(host.directory, 'var/kill'), `${n}`);
    const isKilled = await host.apply([ada, bob], [], [vision('ada'), speech]).then(
      () => false,
      () => true,
    );
    rmSync(join(host.directory, 'var/kill'));
    if (!isKilled) {
      assert.ok(n > 8, `it was killed ${n - 1} times`);
      break;
    }
    const { drift, problems } = await host.apply([ada, bob], [], [vision('ada'), speech]);
    assert.deepEqual([drift, problems], [[], []]);
    assert.deepEqual([...linesOf(host, 'vision'), ...linesOf(host, 'speech')], wanted, `killed at ${n}`);
    await host.apply([ada, bob], [], []);
    assert.deepEqual(
      [...linesOf(host, 'vision'), ...linesOf(host, 'speech')],
      ['vision:x:5003:carol', 'vision:!::carol', '', ''],
    );
  }
});
