/** One host that has accounts already: its files are copies, the script is killed at any write, and the accounts are random. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ManifestAccount } from '../../src/domain/access/manifest.ts';
import { formerRows, planHost } from '../../src/sync/slurm/desired.ts';
import { readFacts } from '../../src/sync/slurm/facts.ts';
import type { Row } from '../../src/sync/slurm/script.ts';
import { mulberry } from '../support/random.ts';
import { isFull } from './lab.ts';
import { oneHost } from './one-host.ts';
import { manifest, person } from './people.ts';

const skip =
  (process.getuid?.() !== 0 || spawnSync('unshare', ['-m', '-u', '-p', '-f', 'true']).status !== 0) &&
  'this machine allows no namespaces';

const given = (username: string, uid: number, gid: number, changes: Partial<ManifestAccount> = {}) =>
  person(username, uid, { gid, isAdopted: true, ...changes });
const formerRow = (one: ManifestAccount) => formerRows([one])[0] as Row;
const bob = given('bob', 1003, 100);
const gus = given('gus', 1008, 1008);
const hal = given('hal', 1009, 100);

const names = ['passwd', 'group', 'shadow', 'gshadow', 'subuid', 'subgid'];
const filesOf = (host: ReturnType<typeof oneHost>) =>
  Object.fromEntries(names.map((name) => [name, host.file(`etc/${name}`)]));

function addAccounts(host: ReturnType<typeof oneHost>, lines: Record<string, string[]>): void {
  for (const [name, added] of Object.entries(lines)) {
    const file = join(host.directory, 'etc', name);
    writeFileSync(file, `${readFileSync(file, 'utf8')}${added.map((line) => `${line}\n`).join('')}`);
  }
}

const bobAndGus = {
  passwd: ['bob:x:1003:100:Bob:/home/bob:/bin/sh', 'gus:x:1008:1008::/home/gus:/bin/sh'],
  group: ['gus:x:1008:'],
  shadow: ['bob:$6$a$b:19000:0:99999:7:::', 'gus:!:19000:0:99999:7::40000:'],
  gshadow: ['gus:!::'],
};

test('where account files are copies nothing is written, and who left has no process', { skip }, async () => {
  using host = oneHost(['compute'], {}, 'true', 'copied');
  addAccounts(host, bobAndGus);
  const before = filesOf(host);
  const facts = await host.apply([{ ...bob, shell: '/bin/dash' }, gus]);
  assert.deepEqual([facts.problems, facts.conflicts, facts.drift, facts.absent], [[], [], [], []]);
  assert.deepEqual(facts.logins, ['bob', 'gus']);
  // The copy of a list on which bob is no more has not come yet.
  const behind = await host.apply([gus, hal]);
  const problem = 'the account files are copied here, and are not current for hal bob ';
  assert.deepEqual(behind.problems, [{ kind: 'account', message: problem }]);
  assert.equal(behind.settled?.generation, 1, 'and the host has not confirmed the list');
  assert.deepEqual(filesOf(host), before);
  const copy = join(host.directory, 'etc/shadow');
  writeFileSync(copy, host.file('etc/shadow').replace(/^bob:.*$/m, 'bob:$6$a$b:19000:0:99999:7::1:'));
  addAccounts(host, { passwd: ['hal:x:1009:100::/home/hal:/bin/sh'], shadow: ['hal:*:19000:0:99999:7:::'] });
  const current = filesOf(host);
  const after = await host.apply([gus, hal]);
  assert.deepEqual([after.problems, after.drift, after.logins], [[], [], ['gus', 'hal']]);
  assert.deepEqual((await host.release()).problems, []);
  assert.deepEqual(filesOf(host), current);
});

test('one that is adopted owes no restart, and one that the host lacked does', { skip }, async () => {
  using host = oneHost(['login']);
  addAccounts(host, bobAndGus);
  const owe: Row = ['owe', 'made', 'login'];
  const adopted = await host.apply([bob, gus], [owe]);
  assert.deepEqual([adopted.logins, adopted.owed], [['bob', 'gus'], []]);
  const { accounts, made } = planHost(adopted, manifest([bob, gus, hal]));
  assert.deepEqual([accounts.restarts, made.added], [[], ['hal']]);
  assert.deepEqual((await host.apply([bob, gus, hal], [owe])).owed, ['login']);
});

test('a line that a lock added to shadow goes with it', { skip }, async () => {
  using host = oneHost(['login']);
  addAccounts(host, { ...bobAndGus, shadow: bobAndGus.shadow.slice(1) });
  const before = filesOf(host);
  assert.deepEqual((await host.apply([gus], [formerRow(bob)])).drift, []);
  assert.match(host.file('etc/shadow'), /^bob:\*:\d+:::::1:$/m);
  // As before us, nothing lets the person in here.
  const [conflict] = (await host.apply([bob, gus])).conflicts;
  assert.match(conflict?.message ?? '', /the account bob is locked here/);
  await host.run(host.releasing([['hand-back', 'bob']]));
  assert.deepEqual(filesOf(host), before);
});

/** Once /var/lib/kill-at has a number, mv kills all of the script in the place of that call. */
const killer = `cp -n /usr/bin/mv /run/mv; cat > /run/killer << 'END'
#!/bin/sh
[ -f /var/lib/kill-at ] || exec /run/mv "$@"
read -r left < /var/lib/kill-at
echo $((left - 1)) > /var/lib/kill-at
[ $left -ne 1 ] || kill -9 -1
[ $left -gt 1 ] || exit 1
exec /run/mv "$@"
END
chmod 755 /run/killer && mount --bind /run/killer /usr/bin/mv`;

test('killed at any write, a host is as it should be after the next pass', { skip }, async () => {
  using host = oneHost(['login'], {}, killer);
  const [saved, counter] = [join(host.directory, 'saved'), join(host.directory, 'var/kill-at')];
  addAccounts(host, bobAndGus);
  const first = filesOf(host);
  const copy = (from: string, to: string) => {
    for (const name of names)
      cpSync(join(from, 'etc', name), join(to, 'etc', name), { preserveTimestamps: true });
    cpSync(join(from, 'var'), join(to, 'var'), { recursive: true });
  };
  const restore = () => {
    rmSync(join(host.directory, 'var/andromeda-slurm'), { recursive: true, force: true });
    copy(saved, host.directory);
  };
  /** The script as one that can be killed: the first process of a namespace cannot. */
  const run = (script: string) => {
    writeFileSync(join(host.directory, 'run/script'), script);
    return host.run('sh /run/script; exit 0');
  };
  const notes = () =>
    host.shell('cat /var/lib/andromeda-slurm/*/accounts /var/lib/andromeda-slurm/*/kept 2> /dev/null; true');
  const steps = [
    () => host.applying([bob, gus, hal]),
    () => host.applying([{ ...gus, shell: '/bin/dash' }, hal], [formerRow(bob)]),
    () => host.applying([bob, gus, hal], []),
    () =>
      host.releasing([
        ['hand-back', 'bob'],
        ['hand-back', 'gus'],
      ]),
  ];
  let kills = 0;
  for (const step of steps) {
    copy(host.directory, saved);
    await run(step());
    const wanted = { ...filesOf(host), notes: await notes() };
    for (let at = 1 + (isFull ? 0 : Math.floor(Math.random() * 12)); ; at += isFull ? 1 : 100) {
      restore();
      writeFileSync(counter, `${at}`);
      await run(step());
      const isKilled = Number(readFileSync(counter, 'utf8')) < 1;
      rmSync(counter);
      if (!isKilled) break;
      kills += 1;
      for (const line of first['passwd']?.split('\n') ?? [])
        if (!/^(bob|gus):/.test(line)) assert.ok(host.file('etc/passwd').includes(line), `${at}: ${line}`);
      // Numbers of processes begin anew with each namespace, so that another process seems to hold the lock.
      for (const name of [...names]) rmSync(join(host.directory, `etc/${name}.lock`), { force: true });
      const facts = readFacts(await host.run(step()), new Map());
      assert.deepEqual(facts.problems, [], `killed at ${at}`);
      assert.deepEqual({ ...filesOf(host), notes: await notes() }, wanted, `killed at ${at}`);
      if (!isFull) break;
    }
  }
  assert.ok(kills >= (isFull ? 40 : 2), `${kills} kills`);
  assert.deepEqual(filesOf(host), first);
});

test('whatever accounts a host has, only what is ours is changed, and all of it comes back', {
  skip,
}, async (t) => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed} (SEED=${seed} runs it again)`);
  const random = mulberry(seed);
  const oneOf = <T>(...all: T[]): T => all[Math.floor(random() * all.length)] as T;
  for (let round = 0; round < (isFull ? 25 : 2); round += 1) {
    using host = oneHost(['login']);
    const people = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6'].map((name, index) =>
      given(name, 1_100 + index, oneOf(100, 1_100 + index)),
    );
    const there = people.filter(() => random() < 0.8);
    const numberOf = ({ uid }: ManifestAccount) => oneOf(uid, uid, uid, uid + 50);
    addAccounts(host, {
      passwd: there.map((one) => {
        const home = oneOf('/home/', '/home/', '/home/', '/data/');
        const shell = oneOf('/bin/sh', '/bin/bash', '', '/usr/sbin/nologin');
        return `${one.username}:x:${numberOf(one)}:${one.gid}:${oneOf('', 'A,,,b', 'Andromeda')}:${home}${one.username}:${shell}`;
      }),
      shadow: there
        .filter(() => random() < 0.8)
        .map(({ username }) => {
          const secret = oneOf('*', '!', '!!', '$6$a$b', '!$6$a$b');
          return `${username}:${secret}:${oneOf('19000', '19000', '19000', '0')}:0:${oneOf('99999', '')}:7::${oneOf('', '', '40000', '10', '1')}:`;
        }),
      group: [
        ...there.filter(({ uid, gid }) => uid === gid).map(({ username, uid }) => `${username}:x:${uid}:`),
        `team:x:4000:${there.map(({ username }) => username).join(',')}`,
      ],
      subuid: there.map(({ username }, index) => `${username}:${900_000 + index * 65_536}:65536`),
    });
    const before = filesOf(host);
    const linesOf = (text = '') => text.split('\n');
    for (let pass = 0; pass < 3; pass += 1) {
      const wanted = people
        .filter(() => random() < 0.7)
        .map((one) => ({ ...one, shell: oneOf('/bin/bash', '/bin/dash') }));
      const former = people.filter(({ userId }) => !wanted.some((one) => one.userId === userId));
      const facts = await host.apply(wanted, former.map(formerRow));
      assert.deepEqual(facts.problems, []);
      const after = filesOf(host);
      const mayDiffer = { passwd: [6], shadow: [7], group: [], gshadow: [], subuid: [], subgid: [] };
      for (const [name, columns] of Object.entries<number[]>(mayDiffer))
        for (const line of linesOf(before[name])) {
          const [username] = line.split(':');
          const now = linesOf(after[name]).find((one) => one.startsWith(`${username}:`)) ?? '';
          const masked = (text: string) =>
            text
              .split(':')
              .map((field, index) => (columns.includes(index) && username?.startsWith('p') ? '' : field))
              .join(':');
          assert.equal(masked(now), masked(line), `${name}, pass ${pass}, round ${round}`);
        }
      for (const username of facts.logins) {
        const { uid, gid } = people.find((one) => one.username === username) ?? bob;
        assert.match(after['passwd'] ?? '', new RegExp(`^${username}:[^:]*:${uid}:${gid}:`, 'm'));
      }
    }
    const everyone = people.map(({ username }): Row => ['hand-back', username]);
    const released = readFacts(await host.run(host.releasing(everyone)), new Map());
    assert.deepEqual(released.problems, []);
    assert.deepEqual(filesOf(host), before, `round ${round}`);
  }
});

/** The script with processes of bob and gus under way; what it says, and whose processes go on. */
async function withProcesses(host: ReturnType<typeof oneHost>, script: string, before = 'true') {
  writeFileSync(join(host.directory, 'run/script'), script);
  const start = (uid: number) => `setpriv --reuid=${uid} --regid=100 --clear-groups sleep 500 &`;
  return host.run(
    `${start(bob.uid)} ${start(gus.uid)} ${before}; sh /run/script; ps -U 1003,1008 -o user= -o stat= | sed -n 's/ *S.*/ goes on/p' | sort; exit 0`,
  );
}

test('a hand-back that fails takes nothing away, nor does a conflict of one who stays', {
  skip,
}, async () => {
  using host = oneHost(['login']);
  addAccounts(host, bobAndGus);
  const first = filesOf(host);
  await host.apply([{ ...bob, shell: '/bin/dash' }, gus, person('ivy', 20_001)]);
  await host.apply([{ ...bob, shell: '/bin/bash' }, gus, person('ivy', 20_001)]);
  const before = filesOf(host);
  const everyone = ['bob', 'gus'].map((name): Row => ['hand-back', name]);
  const release = host.releasing(everyone);
  const open = `sleep 300 & printf %s $! > /etc/passwd.lock`;
  const failed = await withProcesses(host, release.replace('-gt 60', '-gt 2'), open);
  assert.match(failed, /cannot be handed back: \/etc\/passwd is locked by the process \d+/);
  assert.match(failed, /^bob goes on\ngus goes on$/m);
  assert.deepEqual(filesOf(host), before);
  rmSync(join(host.directory, 'etc/passwd.lock'));
  const regrouped = before['passwd']?.replace('bob:x:1003:100:', 'bob:x:1003:4:') ?? '';
  writeFileSync(join(host.directory, 'etc/passwd'), regrouped);
  const conflict = await withProcesses(host, host.applying([bob, gus]));
  assert.match(conflict, /the account bob has the uid 1003 and the gid 4 here/);
  assert.match(conflict, /^bob goes on\ngus goes on$/m);
  writeFileSync(join(host.directory, 'etc/passwd'), before['passwd'] ?? '');
  assert.match(await withProcesses(host, release), /^bob goes on\ngus goes on$/m);
  assert.deepEqual(filesOf(host), first);
});

test('who left is locked on a host that knows nothing of them, or is named', { skip }, async () => {
  using host = oneHost(['login']);
  addAccounts(host, bobAndGus);
  await host.shell("sed -i 's/^sudo:.*/sudo:x:27:bob/' /etc/group");
  const first = filesOf(host);
  const expiryOf = (name: string) =>
    new RegExp(`^${name}:(.*:)*([0-9]*):$`, 'm').exec(host.file('etc/shadow'))?.[2];
  const unfit = await host.apply([gus], [formerRow(bob)]);
  const isOpen = 'bob, who left, has an open account here that is not ours (chage -E 1 bob)';
  assert.deepEqual([unfit.problems, unfit.drift, unfit.faults, expiryOf('bob')], [[], [], [isOpen], '']);
  assert.deepEqual((await host.observe()).faults, [isOpen]);
  // As he was adopted, whatever the settings say by now.
  const privileged = formerRows([{ ...bob, isPrivileged: true }]);
  const locked = await host.apply([gus], privileged);
  assert.deepEqual([locked.faults, expiryOf('bob')], [[], '1']);

  addAccounts(host, {
    passwd: ['boss:x:1008:100::/home/boss:/bin/sh'],
    shadow: ['boss:*:19000:0:99999:7:::'],
  });
  const twin = 'the uid 1008 of gus is also that of boss: when gus leaves, their processes go on';
  assert.deepEqual((await host.observe()).faults, [twin]);
  const left = await host.apply([], [...privileged, formerRow(gus)]);
  assert.deepEqual(left.faults, ['processes of gus, who left, are not ended, as boss has the uid 1008 too']);

  rmSync(join(host.directory, 'var/andromeda-slurm'), { recursive: true });
  for (const name of names) writeFileSync(join(host.directory, 'etc', name), first[name] ?? '');
  addAccounts(host, { passwd: ['hal:x:1209:100::/home/hal:/bin/sh'], shadow: ['hal:*:19000:0:99999:7:::'] });
  const passwd = host.file('etc/passwd');
  const released = await host.run(host.releasing([...privileged, formerRow(hal), ['hand-back', 'gus']]));
  const { notices, problems } = readFacts(released, new Map());
  const another =
    'hal, who left, has an open account here, with the uid 1209 and the gid 100, that is not ours (chage -E 1 hal)';
  assert.deepEqual([problems, notices, expiryOf('bob'), expiryOf('gus')], [[], [another], '1', '40000']);
  assert.equal(host.file('etc/passwd'), passwd);
});
