/** The driver on a Slurm cluster whose people come from a directory: a real slapd, with a real sssd on every host. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SlurmReport } from '../../src/domain/access/manifest.ts';
import { becomes } from '../support/app.ts';
import { everyone as all, type Directory, noDirectory, startDirectory, uidOf } from './directory.ts';
import { isFull, type SlurmLab, startSlurmLab } from './lab.ts';
import {
  associations,
  type Cluster,
  driverOf,
  inTime,
  lastLines,
  manifest,
  person,
  state,
} from './people.ts';

const hosts = ['head', 'a1', 'a2'];
/** PAM is asked about each, which takes its time. */
const everyone = all.slice(0, 12);
const of = (name: string) => person(name, uidOf(name), { userId: `user_${name}`, gid: 33_000 });
const blockedIn = ({ accounts }: SlurmReport) => accounts.map(({ userId }) => userId).join();

/** A number that is another person's, or wanted by another cluster on these hosts, is let go; a host that left keeps nothing of ours. */
async function assertSharedNumbers(lab: SlurmLab, directory: Directory, beta: Cluster): Promise<void> {
  const { shell } = lab;
  const sleeps = (uid: number) => shell('head', `pgrep -u ${uid} sleep | wc -l`);
  const start = (uid: number) =>
    shell('head', `setpriv --reuid ${uid} --clear-groups setsid sleep 500 > /dev/null 2>&1 &`);
  const other = driverOf(lab, directory.settings, { id: '11111111-3c39-4a8e-9a55-0d1c2b3a4f50' });
  await other.apply(manifest([of('dn08')]));
  await beta.apply(manifest([of('dn01'), of('dn10')]));
  assert.equal(await sleeps(uidOf('dn08')), '1');
  await other.apply(manifest([]));
  assert.equal(await sleeps(uidOf('dn08')), '0');
  await start(uidOf('dn10'));
  await directory.remove('dn10');
  await directory.replace('dn20', 'uidNumber', uidOf('dn10'));
  await directory.forget('dn10');
  await beta.apply(manifest([of('dn01')]));
  assert.equal(await sleeps(uidOf('dn10')), '1');
  await other.driver.release(inTime());
  const left = driverOf(lab, { ...directory.settings, retired: ['a2'] });
  await left.apply(manifest([of('dn01')]));
  await becomes(async () => {
    await left.observe();
    return /No such file/.test(await shell('a2', `ls ${state}`));
  }, true);
}

test('people of a Slurm cluster come from a directory', { skip: noDirectory }, async () => {
  using lab = startSlurmLab();
  const { shell } = lab;
  const directory = await startDirectory(lab, hosts);
  const beta = driverOf(lab, { ...directory.settings, rollout: 'restart' });
  const becomeBlocked = (users: string) => becomes(async () => blockedIn(await beta.observe()), users);
  const sums = 'cd /etc; sha256sum passwd shadow group gshadow subuid subgid';
  const files = () => Promise.all(hosts.map((host) => shell(host, sums)));
  const daemons = ['slurmctld', 'slurmdbd', 'sshd-head', 'slurmd-a1'];
  const [filesBefore, pidsBefore] = [await files(), daemons.map(lab.pid)];

  // The number that hosts find is reported, and people are ready once it is theirs.
  const first = await beta.apply(manifest(everyone.map((name) => ({ ...of(name), uid: 0, gid: 0 }))));
  const found = everyone.map((name) => ({ userId: `user_${name}`, uid: uidOf(name), gid: 33_000 }));
  assert.deepEqual([first.numbers, first.failure], [found, null]);
  assert.equal(blockedIn(first), everyone.map((name) => `user_${name}`).join());
  const ready = await beta.converge(manifest(everyone.map(of)));
  assert.deepEqual([ready.accounts, ready.numbers], [[], []]);
  assert.deepEqual(await associations(lab), everyone);
  assert.equal(await shell('head', 'cd /; runuser -u dn01 -- srun -Q id -u'), `${uidOf('dn01')}`);
  assert.ok(lastLines.some((line) => line.includes('dn03 is in the group docker')));

  // A directory that hangs takes nothing from those who were seen, and people who were not are unknown.
  await directory.hang();
  await directory.forget('dn01');
  const withNew = manifest([...everyone.map(of), { ...person('newcomer', 0), userId: 'user_newcomer' }]);
  const hung = await beta.apply(withNew);
  assert.equal(blockedIn(hung), 'user_newcomer');
  assert.match(hung.failure ?? '', /not known whether the directory has an account newcomer/);
  assert.deepEqual(await associations(lab), everyone);
  await directory.goOn();
  const absent = async () =>
    (await beta.observe()).blocked?.map(({ userId, message }) => `${userId}: ${message}`);
  await becomes(async () => (await absent())?.[0], 'user_newcomer: the directory has no account newcomer');
  await beta.converge(manifest(everyone.map(of)));

  // Another number later is a fault. Who is taken out of the directory stays until the directory itself says so.
  await directory.replace('dn04', 'uidNumber', 33_904);
  await directory.forget('dn04');
  assert.equal((await beta.observe()).drifted, true);
  assert.equal(blockedIn(await beta.apply(manifest(everyone.map(of)))), 'user_dn04');
  await directory.remove('dn05');
  await directory.hang();
  await directory.forget('dn05');
  const next = manifest(everyone.map(of));
  assert.equal(blockedIn(await beta.apply(next)), 'user_dn04');
  await directory.goOn();
  await directory.forget('dn05');
  await becomeBlocked('user_dn04,user_dn05');
  const { failure } = await beta.apply(next);
  assert.match(failure ?? '', /the directory has the uid 33904 for dn04, who has 33004 for good/);
  assert.match(failure ?? '', /the directory has no account dn05/);
  await directory.replace('dn04', 'uidNumber', uidOf('dn04'));
  await becomeBlocked('user_dn05');

  // Who may not log in is not ready, with PAM's reason.
  await directory.replace('dn06', 'shadowExpire', 1);
  await becomeBlocked('user_dn05,user_dn06');
  const expired = await beta.apply(manifest(everyone.map(of)));
  assert.match(expired.failure ?? '', /dn06 may not log in: User account has expired/);
  assert.equal(blockedIn(expired), 'user_dn05,user_dn06');
  await directory.replace('dn06', 'shadowExpire', 99_999);
  await becomeBlocked('user_dn05');

  // A local account of the name is not taken for the person.
  await shell('a1', 'cp -p /etc/passwd /etc/passwd.kept; echo dn07:x:1700:1700::/:/bin/sh >> /etc/passwd');
  const local = await beta.apply(manifest(everyone.map(of)));
  assert.match(local.failure ?? '', /the account dn07 is in \/etc\/passwd of this host/);
  await shell('a1', 'mv /etc/passwd.kept /etc/passwd');

  // Who leaves loses processes, jobs and association. The directory keeps the account, and others their processes.
  const run = (name: string) => `cd /; runuser -u ${name} -- sh -c 'setsid sleep 500 > /dev/null 2>&1 &'`;
  await shell('head', `cd /; runuser -u dn02 -- sbatch -o /dev/null --wrap 'sleep 900'; ${run('dn08')}`);
  for (const host of hosts) await shell(host, run('dn02'));
  const stay = everyone.filter((name) => name !== 'dn02' && name !== 'dn05');
  const report = await beta.converge(manifest(stay.map(of)));
  assert.deepEqual([report.runningJobs, report.pendingJobs], [[], []]);
  for (const host of hosts) assert.equal(await shell(host, `pgrep -u ${uidOf('dn02')}`), '', host);
  assert.notEqual(await shell('head', `pgrep -u ${uidOf('dn08')}`), '');
  assert.deepEqual(await associations(lab), stay);
  assert.equal(await shell('head', 'id -u dn02'), `${uidOf('dn02')}`);

  if (isFull) await assertSharedNumbers(lab, directory, beta);

  // No account file was written, no home made, and nothing restarted. A release removes our notes.
  assert.deepEqual([await files(), daemons.map(lab.pid), beta.ended], [filesBefore, pidsBefore, []]);
  assert.equal(await shell('head', 'ls /home'), '');
  await beta.driver.release(inTime());
  for (const host of hosts) assert.match(await shell(host, `ls ${state}`), /No such file/);
  assert.deepEqual(await files(), filesBefore);
});
