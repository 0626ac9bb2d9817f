/** A survey of a real Slurm lab that people used for years: what it says of each, and that it changes nothing. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { checkLab } from '../../src/domain/clusters/lab.ts';
import { mergeSurvey } from '../../src/domain/slurm/survey.ts';
import type { ClusterSurvey } from '../../src/domain/slurm/survey-person.ts';
import { surveySlurm } from '../../src/sync/slurm/survey.ts';
import { createMachine, sessionAt } from '../cli/harness.ts';
import { readPage } from '../docs/pages.ts';
import { alpha, eventually, startTestApp } from '../support/app.ts';
import { keygenFingerprint } from '../support/ssh-keys.ts';
import { filledHosts, fillLab, plainPeople } from './filled-lab.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { clusterId } from './people.ts';

async function survey(lab: SlurmLab, names: string[] = []): Promise<ClusterSurvey> {
  const dataDir = join(lab.directory, 'data/survey');
  const hosts = await surveySlurm({
    ...{ clusterId, organization: 'physics', settings: lab.settings(), dataDir, names },
  });
  return mergeSurvey(hosts, { manager: 'root', gatewayKeys: [] });
}

/** Every file that a host has of its own, with its owner, mode, size and time. Jobs write theirs all the time. */
async function filesOn(lab: SlurmLab): Promise<Set<string>> {
  const find =
    "find /etc /home /var/lib /run -xdev -type f ! -name 'slurm-*.out' -printf '%p %U %G %m %s %T@\\n'";
  const found = await Promise.all(filledHosts.map((host) => lab.shell(host, find)));
  return new Set(found.flatMap((text, index) => text.split('\n').map((line) => `${index} ${line}`)));
}

const byName = ({ people }: ClusterSurvey) =>
  Object.fromEntries(people.map(({ username, verdict, reasons }) => [username, [verdict, ...reasons]]));

/** Lines that no useradd writes: of NIS, of other programs, and of who wants to be another. */
const hostileLines = [
  '+::::::',
  '+@lab::::::',
  '-bad::::::',
  'short:x:1',
  'nonumber:x:abc:1::/:/bin/sh',
  ':x:1201:1201::/:/bin/sh',
  `${'n'.repeat(5_000)}:x:1202:1202::/:/bin/sh`,
  `long:x:1203:1203:${'g'.repeat(100_000)}:/home/long:/bin/sh`,
  'tab:x:1205:1205:a\tkey\tada\tx\tssh-ed25519\tend:/home/tab:/bin/sh',
  'cr:x:1206:1206::/home/cr:/bin/sh\r',
  'end:x:1207:1207::/home/end:/bin/sh',
  '$(id):x:1208:1208::/home/$(id):/bin/sh',
  'a b:x:1209:1209::/home/a b:/bin/sh',
];

/** Makes "head" say which files it holds when a person runs it, and fail for u6; u5 gets more lines than are read. */
const watchReaders = `cat > /run/head << 'END'
#!/bin/sh
me=$(id -u)
[ $me = 0 ] || for fd in /proc/$$/fd/*; do echo "$me \${fd##*/} $(readlink $fd | sed 's/:.*//')" >> /home/held; done
[ $me != 1106 ] || exit 1
exec /run/head.real "$@"
END
install -m 666 /dev/null /home/held; cp /usr/bin/head /run/head.real
chmod 755 /run/head /run/head.real; mount --bind /run/head /usr/bin/head
yes 'ssh-rsa AAAA x' | head -n 100 >> /home/u5/.ssh/authorized_keys`;

test('a lab that people used for years', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ HOMES: 'shared' });
  const filled = await fillLab(lab);

  await t.test('a survey says of each what adopting means, and changes nothing', async () => {
    const before = await filesOn(lab);
    const found = await survey(lab);
    assert.deepEqual([...(await filesOn(lab)).symmetricDifference(before)], []);
    const { cloudsdk: _, ...verdicts } = byName(found);
    assert.deepEqual(verdicts, {
      ...{ ada: ['adopt'], bob: ['adopt'], jo: ['adopt'], may: ['adopt'] },
      ...Object.fromEntries(plainPeople.map((name) => [name, ['adopt']])),
      'Ivy.Lee': ['name', 'it could be ivylee'],
      backup: ['not_person', 'a service runs as it'],
      cleo: ['differs', 'a2 has uid 1204 and gid 1004, not 1004 and 1004'],
      dan: ['privileged', 'it is in the group sudo'],
      eve: ['home', 'its home is /home/old/eve, not /home/eve'],
      finn: ['needs_key', 'of its keys, one is ssh-rsa'],
      gil: ['adopt', 'its password is locked'],
      guest: ['not_person', '2 keys use it'],
      hal: ['adopt', 'it has expired'],
      kim: ['privileged', 'it is in the group docker'],
      lee: ['needs_key', 'of its keys, one is in the account of guest too'],
      lou: ['privileged', 'sudoers names it'],
      ned: ['needs_key', 'it has no key'],
      robot: ['not_person', 'its shell is /usr/sbin/nologin'],
      slurm: ['not_person', 'a service runs as it', 'its shell is /usr/sbin/nologin'],
      toor: ['not_person', 'it has the number 0, which is root'],
      twin1: ['not_person', 'twin2 has the same number'],
      twin2: ['not_person', 'twin1 has the same number'],
    });
    const of = (name: string) => found.people.find(({ username }) => username === name);
    const [ada, bob, jo] = [of('ada'), of('bob'), of('jo')];
    assert.deepEqual([ada?.uid, ada?.gid, ada?.group, ada?.groups], [1001, 100, 'users', ['lab']]);
    assert.deepEqual([ada?.name, ada?.password, bob?.password], ['Ada L.', 'set', 'none']);
    assert.deepEqual(ada?.home, { path: '/home/ada', owner: 1001, mode: '700', closed: false });
    assert.equal(bob?.keys[0]?.line, filled.keys.bob.publicKey.trim());
    assert.deepEqual([jo?.keys.length, jo?.others.map(({ reason }) => reason)], [1, ['has options']]);
    const usual = { accounts: ['lab'], default: 'lab', cpu: 0, gpu: 0, pending: 0 };
    assert.deepEqual(ada?.slurm, { ...usual, level: 'Operator', coordinates: ['lab'], running: 0 });
    assert.deepEqual(bob?.slurm, { ...usual, level: 'None', coordinates: [], running: 1 });
    const login = { host: found.hosts[0]?.host, times: 2, last: 'Nov 21 09:00:01' };
    assert.deepEqual(bob?.logins, [{ ...login, from: '192.0.2.7', fingerprint: 'SHA256:bobs' }]);
    assert.deepEqual(
      ada?.logins.map(({ from, times }) => [from, times]),
      [['2001:db8::7', 1]],
    );
    const notices = found.notices.filter((line) => !line.includes('directory'));
    assert.deepEqual(
      notices.map((line) => line.replace(/^\S+: /, '')),
      [
        'may write account files: /etc/cron.d/sync:*/5 * * * * root scp -q /etc/passwd /etc/shadow /etc/group a2:/etc/',
        'Slurm reads groups again after 600 s (GroupUpdateTime)',
      ],
    );
  });

  await t.test('the commands that a survey prints mend what it found', async () => {
    const { people } = await survey(lab);
    for (const { commands } of people.filter(({ verdict }) =>
      ['name', 'differs', 'home'].includes(verdict),
    )) {
      for (const command of commands) {
        const [, host, rest = command] = /^(a2): (.*)$/.exec(command) ?? [];
        for (const one of host === undefined && !/^(ln|sacctmgr)/.test(rest)
          ? filledHosts
          : [host ?? 'head']) {
          const { status, out } = await lab.on(
            one,
            rest.replace(/^sacctmgr/, 'sacctmgr -i').replaceAll('find / ', 'find /home '),
          );
          assert.equal(status, 0, `${one}: ${rest}: ${out}`);
        }
      }
    }
    const verdicts = byName(await survey(lab));
    assert.deepEqual([verdicts['cleo'], verdicts['ivylee']?.[0]], [['adopt'], 'home']);
    assert.notEqual(verdicts['eve']?.[0], 'home', 'the link counts');
    assert.equal(await lab.shell('head', 'sacctmgr -nP show assoc user=ivylee format=account'), 'lab');
    assert.equal(await lab.shell('head', 'cat /home/eve/file'), 'eve was here');
  });

  await t.test('what accounts and keys are called is text, and never a line of the answer', async () => {
    const lines = hostileLines.join('\n').replaceAll("'", "'\\''");
    await lab.shell('head', `printf '%s\\n' '${lines}' >> /etc/passwd`);
    const keys = 'key\tada\tx\nend\n# file /etc/shadow\n\taccount\tfiles\tbad\t0\t0\n';
    await lab.shell(
      'head',
      `printf '%s' '${keys}' >> /home/u1/.ssh/authorized_keys; ln -sf /etc/shadow /home/u2/.ssh/authorized_keys; rm /home/u3/.ssh/authorized_keys; mkfifo /home/u3/.ssh/authorized_keys; chown 1103 /home/u3/.ssh/authorized_keys`,
    );
    await lab.shell('head', watchReaders);
    const found = await survey(lab, ['ada', '-r', '$(touch /tmp/andromeda-survey)', 'x'.repeat(256)]);
    const of = (name: string) => found.people.find(({ username }) => username === name);
    assert.deepEqual(
      found.hosts.map(({ fault }) => fault),
      [null, null, null],
    );
    const names = found.people.map(({ username }) => username);
    for (const name of ['long', 'tab', 'cr', 'end', '$(id)', 'a b']) assert.ok(names.includes(name), name);
    assert.ok(!names.some((name) => /bad|short|nonumber|^n{9}|^[+-]/.test(name)), names.join());
    assert.deepEqual([of('tab')?.name, of('cr')?.shell], ['a key ada x ssh-ed25519 end', '/bin/sh ']);
    assert.deepEqual([of('ada')?.keys.length, of('u1')?.keys.length], [1, 1]);
    assert.deepEqual([of('u2')?.keys, of('u3')?.keys], [[], []]);
    assert.deepEqual(of('$(id)')?.commands[0], "usermod -l id2 '$(id)'".replace('2', ''));
    await lab.shell('head', 'cp /etc/passwd- /etc/passwd; umount /usr/bin/head');
    // A process of the person can take each of these, and keep it.
    const held = (await lab.shell('head', 'cat /home/held')).split('\n');
    assert.ok(held.includes('1101 1 pipe'), held.join('\n'));
    assert.deepEqual(
      held.filter((line) => /andromeda|etc/.test(line)),
      [],
    );
    assert.ok(found.notices.some((line) => /: not all lines of keys of u5 were read: 100 of/.test(line)));
    assert.deepEqual([of('u5')?.keys.length, of('u5')?.unread.length], [1, 1]);
    assert.match(of('u6')?.reasons.join() ?? '', /^its keys on \S+ are not known$/);
    assert.deepEqual(of('u7')?.unread, []);
  });

  await t.test('every command of docs/moving-in.md does what it says, and CSV has it all', async (t) => {
    const switching = readPage('moving-in.md', 'Switching over in weeks');
    const until = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
    const [direct = ''] = switching.settings;
    await using service = await startTestApp({
      lab: {
        users: [{ email: 'root@physics.example', staff: ['staff.operate'] }],
        organizations: [
          { slug: 'physics', name: 'Physics', members: [{ email: 'olga@physics.example', role: 'owner' }] },
        ],
        clusters: [
          {
            name: 'alpha',
            id: alpha,
            organization: 'physics',
            scheduler: 'sunk',
            slurm: {
              ...lab.settings({ rollout: 'live', adopt: true, adoptPrivileged: ['dan', 'kim', 'lou'] }),
              ...parse(direct.replace(/\d{4}-\d\d-\d\d/, until)).slurm,
            },
          },
        ],
      },
    });
    const machine = await createMachine(t);
    const { businessUrl, issuer, platformUrl } = service;
    const accessToken = await issuer.token('root');
    await machine.writeProfile([sessionAt(platformUrl, { businessUrl, issuer: issuer.url, accessToken })]);
    const [people, file] = [join(lab.directory, 'people.csv'), join(lab.directory, 'people.yaml')];
    /** Runs a line of shell that quotes with single quotes alone, with the page's files where these are. */
    const run = async (line = '') => {
      const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
      const args = words.slice(1).map((word) => (/^people\./.test(word) ? join(lab.directory, word) : word));
      const ended = await machine.run(args);
      assert.equal(ended.status, 0, `${line}: ${ended.stderr}`);
      return ended;
    };
    const { commands } = readPage('moving-in.md', 'People in files');
    assert.equal(commands.length, 5);
    const [sshd = '', list = '', ...more] = switching.commands;
    assert.deepEqual(more, []);
    // The other labs have the same commands.
    for (const line of readPage('moving-in.md').commands)
      assert.ok([...commands, sshd, list].includes(line), line);
    assert.match((await run(sshd)).stdout, /^ {4}AuthorizedKeysCommand .*andromeda-direct/m);
    // A host that does not answer is a line, and the others are surveyed.
    lab.control('stop', 'sshd-a2');
    writeFileSync(people, 'login,email,name\nada,a.lovelace@physics.example,Ada Lovelace\n');
    const first = await run(commands[0]);
    const table = await run(commands[1]);
    assert.equal(table.stdout, first.stdout);
    assert.match(table.stdout, /^a2 is not in this survey: .*cannot be reached/m);
    assert.match(table.stdout, /^USERNAME +UID +GROUP +KEYS +JOBS +LOGINS +VERDICT$/m);
    assert.match(table.stdout, /^ada +1001 +users +1 +0\+0 +1 +adopt as is$/m);
    assert.match(table.stdout, /^bob +1003 +bob +1 +1\+0 +2 +adopt as is$/m);
    assert.match(table.stdout, /^finn .* needs an Ed25519 key: of its keys, one is ssh-rsa$/m);
    assert.match(
      table.stderr,
      /^\S+people\.yaml has \d+ of \d+ accounts; its first lines say what is left to decide \(\d+\)\.\n$/,
    );
    const csv = (await run('andromeda admin cluster survey alpha -o csv')).stdout.split('\n');
    assert.match(csv[0] ?? '', /^"username","uid","gid","shell","source",/);
    assert.match(
      csv.find((line) => line.startsWith('"ada"')) ?? '',
      /^"ada","1001","100","\/bin\/bash","files","set",/,
    );
    const text = readFileSync(file, 'utf8');
    assert.match(text, /^# gil \(uid 1008, gid 1008\) is left out: its password is locked/m);
    assert.match(text, /^# slurm of alpha needs adoptPrivileged: \[dan, kim, lou\]/m);
    const written = parse(text);
    checkLab(written);
    const members = written.organizations[0].members;
    assert.deepEqual(members[0], {
      ...{ email: 'a.lovelace@physics.example', role: 'member', username: 'ada', uid: 1001, gid: 100 },
      permissions: ['clusters.read', 'clusters.ssh'],
      keys: [filled.keys.ada.publicKey.trim()],
    });
    // Reading that file is the migration.
    assert.match((await run(commands[2])).stdout, /ada/);
    await run(commands[3]);
    assert.match((await run(commands[2])).stdout, /^Nothing would change\.$/m);
    await run(commands[4]);
    // Who is adopted is not in a survey any more, which shows who is left.
    const again = () => run('andromeda admin cluster survey alpha');
    const left = await eventually(again, ({ stdout }) => !/^ada /m.test(stdout));
    assert.match(left.stdout, /: \d+ accounts are Andromeda's already, and not in this survey$/m);
    assert.match(left.stdout, /^finn /m);
    assert.match((await run(list)).stdout, new RegExp(`\\bada\\b.* until ${until}`));
    const { body } = await service.business('/me', { as: 'bob' });
    const { keys } = (await service.business('/me/ssh-keys', { as: 'bob' })).body;
    assert.equal(body.memberships[0].organization_username.username, 'bob');
    assert.deepEqual(
      keys.map((one: { fingerprint: string }) => one.fingerprint),
      [keygenFingerprint(filled.keys.bob.publicKey)],
    );
    lab.control('start', 'sshd-a2');
  });
});
