/** People who were on a cluster before us: adopted as they are, locked when they leave, and handed back. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import type { FormerAccount } from '../../src/domain/access/adopted.ts';
import type { ManifestAccount } from '../../src/domain/access/manifest.ts';
import { becomes } from '../support/app.ts';
import { keygen } from '../support/ssh-keys.ts';
import { isFull, noSlurm, startSlurmLab } from './lab.ts';
import { driverOf, inTime, lastLines, manifest, person } from './people.ts';

const hosts = ['head', 'a1', 'a2'];
const settings = { adopt: true, accounting: { account: 'physics' } };
const given = (username: string, uid: number, gid: number, changes: Partial<ManifestAccount> = {}) =>
  person(username, uid, { gid, isAdopted: true, ...changes });
const bob = given('bob', 1003, 100);
const cleo = given('cleo', 1004, 1004);
const dan = given('dan', 1005, 1005);
const eve = given('eve', 1006, 1006);
const fay = given('fay', 1007, 1007);
const gus = given('gus', 1008, 5001);
const hal = given('hal', 1009, 5001);
const all = [bob, cleo, dan, eve, fay, gus];

const byHand = `
  groupadd -g 5001 lab
  useradd -u 1003 -g users -m -c "Bob B,Room 1" -p '$6$salt$hash' bob
  useradd -u $cleo -U -m -s /bin/sh -p '!' cleo
  useradd -u 1005 -U -m -G sudo -p '*' dan
  mkdir -p /home/.data; useradd -u 1006 -U -m -d /home/.data/eve -p '*' eve
  useradd -u 1007 -U -m -e 1970-01-02 -p '*' fay
  useradd -u 1008 -g 5001 -m -s /bin/sh -e 2099-12-31 -p '*' gus`;

test('people who were on a Slurm cluster before', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab();
  const { shell } = lab;
  const everywhere = async (command: string) =>
    Object.fromEntries(
      await Promise.all(hosts.map(async (host) => [host, await shell(host, command)] as const)),
    );
  const files = () => everywhere('cd /etc; cat passwd group shadow gshadow subuid subgid');
  const expiryOf = (name: string) => everywhere(`awk -F: '$1 == "${name}" { print $8 }' /etc/shadow`);
  const onAll = (text: string) => Object.fromEntries(hosts.map((host) => [host, text]));
  const next = (people: ManifestAccount[], former: FormerAccount[] = []) => ({ ...manifest(people), former });

  await Promise.all(
    hosts.map((host) => shell(host, `cleo=${host === 'a2' ? 1014 : 1004}; ${byHand.trim()}`)),
  );
  await shell(
    'head',
    `sacctmgr -i add account physics Description=site
     sacctmgr -i add user bob account=physics fairshare=7 AdminLevel=Operator; sacctmgr -i add user gus,cleo account=physics
     sacctmgr -i modify user where name=bob account=physics set GrpJobs=20; sacctmgr -i add account shared Description=site
     sacctmgr -i add user bob account=shared GrpSubmitJobs=5; sacctmgr -i add user fay account=physics GrpSubmitJobs=0 GrpJobs=0
     sacctmgr -i add user dan account=physics GrpSubmitJobs=9`,
  );
  const associations = () =>
    shell(
      'head',
      'sacctmgr -nP show assoc account=physics,shared format=user,fairshare,grpsubmit,grpjobs,maxjobs,account; sacctmgr -nP show user bob',
    );
  await shell('head', "runuser -u bob -- sh -c 'echo mine > ~/file; setsid sleep 900 > /dev/null 2>&1 &'");
  const job = await lab.runJob('', 'bob');
  await everywhere(
    'mkdir /var/lib/first; cp -a /etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/subuid /etc/subgid /var/lib/first',
  );
  const first = await files();
  const firstAssociations = await associations();

  await t.test('one with the same name and numbers is adopted, and nothing of it changes', async () => {
    const beta = driverOf(lab, { ...settings, rollout: 'restart' });
    const report = await beta.apply(next(all));
    assert.deepEqual(await files(), first);
    assert.deepEqual([beta.ended, await lab.stateOf(job)], [[], 'RUNNING'], 'nothing restarts');
    assert.equal(await shell('head', 'pgrep -c -u bob sleep; cat ~bob/file'), '1\nmine');
    for (const one of [
      /0x7f0000a2:\d+: the account cleo has the uid 1014 and the gid 1014 here, and not 1004 and 1004/,
      /dan is in the group sudo, and not in adoptPrivileged/,
      /the home of eve is \/home\/\.data\/eve \(ln -s \/home\/\.data\/eve \/home\/eve\)/,
      /the account fay is locked here, or has expired/,
    ])
      assert.match(report.failure ?? '', one);
    const waiting = report.accounts.map(({ userId }) => userId).sort();
    assert.deepEqual(
      waiting,
      [dan, eve, fay].map(({ userId }) => userId),
    );
    assert.match(lastLines.join(''), /bob keeps the password of before, which is a second way in/);
    assert.equal(await shell('head', 'stat -c %a /var/lib/andromeda-slurm/*/kept'), '600');
    assert.equal(await associations(), firstAssociations);
  });

  const beta = driverOf(lab, { ...settings, adoptPrivileged: ['dan'] });

  await t.test('what kept an account from it is mended by the site, and it is adopted', async () => {
    await everywhere('ln -s /home/.data/eve /home/eve; chage -E -1 fay');
    await shell('a2', 'groupmod -g 1004 cleo; usermod -u 1004 -g 1004 cleo');
    const before = await files();
    assert.deepEqual((await beta.converge(next(all))).accounts, []);
    assert.deepEqual(await files(), before);
    // One that no host has is made with the numbers, in a group that is there.
    await beta.converge(next([...all, hal]));
    assert.deepEqual(
      await everywhere('id hal; stat -c %u:%g /home/hal; grep -c ^hal: /etc/group'),
      onAll('uid=1009(hal) gid=5001(lab) groups=5001(lab)\n1009:5001\n0'),
    );
    assert.equal(await shell('head', 'runuser -u eve -- srun -Q id -un'), 'eve');
  });

  await t.test('a shell that is chosen later is set, and the others stay', async () => {
    await beta.converge(next([...all.slice(0, 5), { ...gus, shell: '/bin/dash' }, hal]));
    assert.deepEqual(await everywhere('getent passwd gus cleo | cut -d: -f7'), onAll('/bin/dash\n/bin/sh'));
  });
  const people = [cleo, dan, eve, fay, { ...gus, shell: '/bin/dash' }, hal];

  if (isFull)
    await t.test('who is locked comes in by no other way: sshd, su, cron, at', async () => {
      const key = keygen('-t', 'ed25519');
      const file = `${lab.directory}/way-in`;
      writeFileSync(file, key.privateKey, { mode: 0o600 });
      writeFileSync(`${lab.directory}/etc/gateway.pub`, key.publicKey);
      const logIn = (name: string) =>
        shell(
          'head',
          `ssh -F none -i ${file} -o StrictHostKeyChecking=no -p ${lab.port} ${name}@127.0.0.1 id -un 2>&1 | tail -n 1`,
        );
      const asRoot = (name: string) => shell('head', `su -s /bin/sh ${name} -c "id -un" 2>&1`);
      assert.deepEqual([await logIn('bob'), await asRoot('bob')], ['bob', 'bob']);
      // A namespace may not write /proc/self/loginuid.
      const spool = `sed -i /pam_loginuid/d /etc/pam.d/cron /etc/pam.d/atd && mount -t tmpfs none /var/spool/cron && cd /var/spool/cron && mkdir -m 1730 crontabs && chgrp crontab crontabs &&
        mkdir -m 1770 atjobs atspool && echo 00000 > atjobs/.SEQ && chown -R daemon:daemon atjobs atspool`;
      assert.equal(await shell('head', spool), '');
      for (const name of ['bob', 'gus']) {
        const tab = `/var/spool/cron/crontabs/${name}`;
        await shell(
          'head',
          `echo '* * * * * touch /home/${name}/by-cron' > ${tab}; chown ${name}:crontab ${tab}; chmod 600 ${tab}
           runuser -u ${name} -- sh -c 'cd /; echo touch /home/${name}/by-at | at now + 1 minute'`,
        );
      }
      await shell('head', 'cron; atd');
      await beta.converge(next(people, [bob]));
      assert.match(await logIn('bob'), /closed|denied/i);
      assert.match(await asRoot('bob'), /expired/);
      const made = (name: string) => shell('head', `ls /home/${name} | grep by-`);
      await becomes(() => made('gus'), 'by-at\nby-cron');
      assert.equal(await made('bob'), '');
      await shell('head', 'pkill cron; pkill atd; umount -l /var/spool/cron');
      await beta.converge(next([...people, bob]));
      assert.equal(await logIn('bob'), 'bob');
    });

  await t.test('who leaves is locked, and locked again where a host was installed anew', async () => {
    await beta.converge(next(people, [bob]));
    assert.deepEqual(await expiryOf('bob'), onAll('1'));
    assert.equal(await shell('head', 'pgrep -c -u bob sleep'), '0');
    assert.equal(await lab.stateOf(job), 'gone');
    assert.match(await shell('head', 'su -s /bin/sh bob -c true'), /expired/);
    const closed = await associations();
    assert.match(closed, /^bob\|7\|0\|0\|\|physics/m);
    assert.match(closed, /^bob\|1\|0\|0\|\|shared/m);
    await shell(
      'a1',
      'cp -a /var/lib/first/* /etc; rm -rf /var/lib/andromeda-slurm; ln -sf /home/.data/eve /home/eve; chage -E -1 fay',
    );
    assert.equal((await expiryOf('bob'))['a1'], '');
    await beta.converge(next(people, [bob]));
    assert.deepEqual(await expiryOf('bob'), onAll('1'));
    await beta.converge(next([...people, bob]));
    assert.deepEqual(await expiryOf('bob'), onAll(''));
    const open = await associations();
    assert.match(open, /^bob\|7\|\|20\|\|physics/m);
    assert.match(open, /^bob\|1\|5\|\|\|shared/m);
    assert.match(open, /^fay\|1\|0\|0\|\|physics/m, 'the site has closed it');
    const notice = 'the site has closed the associations of fay in the account physics, and they stay closed';
    assert.ok(
      lastLines.some((line) => line.includes(notice)),
      lastLines.join('\n'),
    );
    // An expiry that the site set is back with the person.
    await beta.converge(next([bob, ...people.filter((one) => one.username !== 'gus')], [gus]));
    assert.deepEqual(await expiryOf('gus'), onAll('1'));
    await beta.converge(next([...people, bob]));
    assert.deepEqual(await expiryOf('gus'), onAll('47481'));
  });

  await t.test('a release hands back what it changed, and leaves locked who left', async () => {
    await beta.converge(next([bob, ...people.filter((one) => one.username !== 'cleo')], [cleo]));
    await shell('a2', 'usermod -s /bin/bash bob');
    await beta.driver.release(inTime(), { handBack: ['bob', 'dan', 'eve', 'fay', 'gus'] });
    const now = await files();
    const changed = (text: string) =>
      text
        .replace(/^cleo:!:(\d+):0:99999:7:::$/m, 'cleo:!:$1:0:99999:7::1:')
        .replace(/^fay:(.*)::1:$/m, 'fay:$1:::');
    assert.equal(now['head'], changed(first['head'] ?? ''));
    assert.match(now['a2'] ?? '', /^bob:x:1003:100:.*:\/bin\/bash$/m);
    assert.equal(await shell('a1', 'ls /var/lib/andromeda-slurm 2>&1 | grep -c cannot'), '1');
    const said = lastLines.filter((line) => line.includes('slurm.noticed')).join('');
    assert.match(said, /cleo stays locked \(chage -E -1 cleo\)/);
    assert.equal(await associations(), firstAssociations.replace('cleo|1|||', 'cleo|1|0|0|'));
  });
});
