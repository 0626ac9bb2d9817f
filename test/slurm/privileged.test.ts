/** Accounts of a site that are not adopted, or not ready any more: who may become root, or comes in with nothing, or is kept out by it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import type { ManifestAccount } from '../../src/domain/access/manifest.ts';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { oneHost } from './one-host.ts';
import { person } from './people.ts';

const skip =
  (process.getuid?.() !== 0 || spawnSync('unshare', ['-m', '-u', '-p', '-f', 'true']).status !== 0) &&
  'this machine allows no namespaces';

const given = (username: string, uid: number, gid: number) => person(username, uid, { gid, isAdopted: true });
const bob = given('bob', 1003, 100);
const gus = given('gus', 1008, 1008);

function hostWith(lines: string, settings: Partial<SlurmSettings> = {}) {
  const host = oneHost(['login'], settings);
  const accounts = `useradd -u 1003 -g 100 -M -s /bin/sh -p '*' bob; useradd -u 1008 -U -M -s /bin/sh -p '*' gus`;
  const rules = `cat > /etc/sudoers.d/site << 'END'\n${lines}\nEND\nchmod 440 /etc/sudoers.d/site`;
  return { host, ready: host.shell(`${accounts}; ${rules}`) };
}

async function conflictsWith(
  lines: string,
  people: readonly ManifestAccount[],
  settings?: Partial<SlurmSettings>,
) {
  const { host, ready } = hostWith(lines, settings);
  using own = host;
  await ready;
  const { conflicts, logins, problems } = await own.apply(people);
  assert.deepEqual(problems, []);
  return { conflicts: conflicts.map(({ message }) => message), logins };
}

test('sudo is asked, so that no form of its rules is a way around adoptPrivileged', { skip }, async () => {
  const isUser = (name: string) => `${name} is a user of sudo, and not in adoptPrivileged`;
  const rules = {
    '#1003 ALL=(ALL) NOPASSWD: ALL': 'bob',
    '%#100 ALL=(root) /usr/bin/id': 'bob',
    'User_Alias STAFF = ada, gus\nSTAFF ALL=(ALL) ALL': 'gus',
    '@includedir /etc/site-rules': 'gus',
    'ALL, !gus ALL=(ALL) ALL\n@include /etc/site-rules/rules': 'gus',
  };
  for (const [lines, name] of Object.entries(rules)) {
    const { host, ready } = hostWith(lines);
    using own = host;
    await ready;
    await own.shell(
      'mkdir /etc/site-rules; echo "gus ALL=(ALL) NOPASSWD: ALL" > /etc/site-rules/rules; chmod 440 /etc/site-rules/rules',
    );
    const { conflicts, logins } = await own.apply([bob, gus]);
    assert.deepEqual(
      [conflicts.map(({ message }) => message), logins],
      [[isUser(name)], name === 'bob' ? ['gus'] : ['bob']],
      lines,
    );
  }
  const allowed = await conflictsWith('#1003 ALL=(ALL) ALL', [bob, gus], { adoptPrivileged: ['bob'] });
  assert.deepEqual(allowed, { conflicts: [], logins: ['bob', 'gus'] });
});

test('where sudo does not answer, the account is not adopted; where there is none, it is', {
  skip,
}, async () => {
  const { host, ready } = hostWith('');
  using own = host;
  await ready;
  await own.shell('chmod 666 /etc/sudoers');
  const message = 'it is not known whether bob may become root (sudo -l -U bob)';
  assert.deepEqual(
    (await own.apply([bob])).conflicts.map((one) => one.message),
    [message],
  );
  // A person who left is locked all the same on a host that was installed anew.
  await own.apply([], [['former', 'gus', 1008, 1008]]);
  assert.equal(await own.shell(`awk -F: '$1 == "gus" { print $8 }' /etc/shadow`), '1');
  // A program that cannot be run is as good as none.
  using without = oneHost(['login'], {}, 'touch /run/none && mount --bind /run/none /usr/bin/sudo');
  await without.shell(`useradd -u 1003 -g 100 -M -s /bin/sh -p '*' bob`);
  assert.deepEqual((await without.apply([bob])).logins, ['bob']);
});

test('an account that is made gets no rights that sudoers or a group has for its name or numbers', {
  skip,
}, async () => {
  const [ada, eve, fay] = [person('ada', 40_001), person('eve', 40_002), person('fay', 40_003)];
  const [hal, ida] = [given('hal', 40_004, 27), given('ida', 40_005, 0)];
  const names = 'ada ALL=(ALL) ALL\n#40002 ALL=(ALL) ALL\n%fay ALL=(ALL) ALL';
  const found = await conflictsWith(names, [ada, eve, fay, hal, ida, gus]);
  const named = ['ada', 'eve', 'fay'].map(
    (name) => `sudoers names ${name} or a number of theirs, and ${name} is not in adoptPrivileged`,
  );
  const groups = ['sudo (gid 27)', 'root (gid 0)'].map(
    (group, at) =>
      `members of the group ${group} may become root, and ${['hal', 'ida'][at]} is not in adoptPrivileged`,
  );
  assert.deepEqual(found, { conflicts: [...named, ...groups], logins: ['gus'] });
  const allowed = await conflictsWith(names, [ada], { adoptPrivileged: ['ada'] });
  assert.deepEqual(allowed, { conflicts: [], logins: ['ada'] });
});

test('a team takes no group over that sudoers names', { skip }, async () => {
  const { host, ready } = hostWith('%hpc ALL=(ALL) ALL\n%#5006 ALL=(ALL) ALL');
  using own = host;
  await ready;
  await own.shell('groupadd -g 5005 hpc; groupadd -g 5006 robots');
  const groups = ['hpc', 'robots'].map((name, at) => ({ name, gid: 5_005 + at, members: ['gus'] }));
  const { faults } = await own.apply([gus], [], groups);
  assert.deepEqual(
    faults,
    groups.map(({ name }) => `the group ${name} is not taken, as sudoers names it`),
  );
  assert.equal(await own.shell('id -Gn gus'), 'gus');
});

test('an empty password, or one in /etc/passwd, is not adopted, and kept ones are named in one line', {
  skip,
}, async () => {
  const { host, ready } = hostWith('');
  using own = host;
  await ready;
  const names = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'];
  const add = names.map((name, at) => `useradd -u ${1_100 + at} -g 100 -M -s /bin/sh -p '$6$a$b' ${name}`);
  await own.shell(
    `${add.join('; ')}; sed -i 's/^bob:[^:]*:/bob::/' /etc/shadow; sed -i 's/^gus:x:/gus::/; s/^a7:x:/a7:$6$a$b:/' /etc/passwd`,
  );
  const people = names.map((name, at) => given(name, 1_100 + at, 100));
  const { conflicts, notices, logins } = await own.apply([bob, gus, ...people]);
  assert.deepEqual(
    conflicts.map(({ message }) => message),
    [
      ...['bob', 'gus'].map((name) => `the account ${name} has an empty password (passwd -l ${name})`),
      'the account a7 has its password in /etc/passwd (pwconv)',
    ],
  );
  const kept = names.filter((name) => name !== 'a7');
  assert.deepEqual(notices, [`${kept.join(', ')} keep the password of before, which is a second way in`]);
  assert.deepEqual(logins, kept);
});

test('a shell that the site set to keep an adopted person out is left, and they are not ready', {
  skip,
}, async () => {
  const { host, ready } = hostWith('');
  using own = host;
  await ready;
  await own.apply([bob, { ...gus, shell: '/bin/sh' }]);
  await own.apply([bob, { ...gus, shell: '/bin/bash' }]);
  await own.shell('usermod -s /usr/sbin/nologin gus; usermod -s /bin/false bob');
  const seen = await own.observe();
  assert.deepEqual(
    seen.drift.toSorted(),
    ['bob', 'gus'].map((name) => `something stands in the way of ${name}`),
  );
  const { conflicts } = await own.apply([bob, { ...gus, shell: '/bin/bash' }]);
  assert.deepEqual(
    conflicts.map(({ message }) => message),
    ['the account bob has the shell /bin/false', 'the account gus has the shell /usr/sbin/nologin'],
  );
  assert.equal(await own.shell('getent passwd gus | cut -d : -f 7'), '/usr/sbin/nologin');
  await own.shell('usermod -s /bin/bash gus; usermod -s /bin/sh bob');
  const back = await own.apply([bob, { ...gus, shell: '/bin/bash' }]);
  assert.deepEqual([back.conflicts, back.drift, back.logins], [[], [], ['bob', 'gus']]);
});
