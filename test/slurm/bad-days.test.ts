/** What can go wrong with a real Slurm cluster, and where a change is cut off: each ends converged once the cause is gone. */
import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { keygen } from '../support/ssh-keys.ts';
import { isFull, noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, assertConverged, driverOf, inTime, manifest, person, statusOf } from './people.ts';

const hosts = ['head', 'a1', 'a2'];
const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const cy = person('cy', 30_003);

test('bad days of a Slurm cluster', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab();
  const { shell } = lab;
  const beta = driverOf(lab);
  const converged = (people: readonly { username: string; uid: number }[]) =>
    assertConverged(lab, hosts, people);
  /** Without a daemon until `back`, or the end of a test that fails. */
  const without = (daemon: string) => {
    lab.control('stop', daemon);
    const back = () => lab.control('start', daemon);
    return { back, [Symbol.dispose]: back };
  };

  await beta.converge(manifest([ada]));
  await converged([ada]);

  await t.test('a host that does not answer is left out, the others go on, and it catches up', async () => {
    using sshd = without('sshd-a1');
    const next = manifest([ada, bob]);
    const report = await beta.apply(next);
    assert.deepEqual([report.manifestGeneration, report.failure], [next.generation, null]);
    assert.deepEqual(await accountsOn(lab, 'a1'), ['ada:30001']);
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q -w a2 id -un'), 'bob');
    sshd.back();
    assert.equal((await beta.observe()).drifted, true);
    await beta.converge(next);
    await converged([ada, bob]);
  });

  await t.test('a controller that does not answer leaves what was confirmed confirmed', async () => {
    const before = await beta.observe();
    using sshd = without('sshd-head');
    const next = manifest([ada, bob, cy]);
    const report = await beta.apply(next);
    assert.equal(report.manifestGeneration, before.manifestGeneration);
    assert.equal(statusOf(report), 'Unknown ControllerUnreachable');
    assert.equal(report.loginNodes[0]?.up, false);
    // One that never saw it knows nothing of it.
    await assert.rejects(driverOf(lab).observe(), /127\.0\.0\.1:\d+ cannot be reached: .*Connection refused/);
    sshd.back();
    await becomes(async () => (await beta.apply(next)).manifestGeneration, next.generation);
    await converged([ada, bob, cy]);
  });

  await t.test('a host whose key changed gets nothing, and is named', async () => {
    const { publicKey } = keygen('-t', 'ed25519');
    const wary = driverOf(lab, {
      compute: { host: '0x7f0000{name}', port: lab.port, hostKey: publicKey.trim() },
    });
    const next = manifest([ada, bob]);
    const report = await wary.apply(next);
    assert.match(report.failure ?? '', /0x7f0000a1:\d+ shows a host key that is not the expected one/);
    assert.equal(report.manifestGeneration, next.generation);
    assert.deepEqual((await accountsOn(lab, 'a1')).length, 3, 'nothing was sent there');
    await beta.converge(next);
    await converged([ada, bob]);
  });

  await t.test('a management key that is not taken, or not there, is said in words', async () => {
    const identityFile = join(lab.directory, 'other');
    writeFileSync(identityFile, keygen('-t', 'ed25519').privateKey, { mode: 0o600 });
    const { observe } = driverOf(lab, { manage: { identityFile } });
    await assert.rejects(observe(), /does not take the management key/);
    rmSync(identityFile);
    await assert.rejects(observe(), /does not take the management key|cannot be read/);
  });

  await t.test('a management user without sudo is said in words, and does with it', async () => {
    const everywhere = (command: string) => Promise.all(hosts.map((host) => shell(host, command)));
    await everywhere("useradd -u 999 -M -s /bin/sh -p '*' manager; rm -f /etc/sudoers.d/manager");
    const settings = { manage: { user: 'manager', identityFile: lab.identityFile } };
    await assert.rejects(driverOf(lab, settings).observe(), /sudo refuses on 127\.0\.0\.1:\d+: .*NOPASSWD/);
    if ((await lab.on('head', 'command -v sudo')).status !== 0) return;
    const line = 'manager ALL=(root) NOPASSWD: ALL';
    await everywhere(`umask 227; echo '${line}' > /etc/sudoers.d/manager`);
    const next = manifest([ada, cy]);
    assert.equal((await driverOf(lab, settings).apply(next)).manifestGeneration, next.generation);
    await converged([ada, cy]);
  });

  await t.test('with slurmdbd down people can log in, and have their association later', async () => {
    using slurmdbd = without('slurmdbd');
    const next = manifest([ada]);
    const report = await beta.apply(next);
    assert.deepEqual([report.manifestGeneration, report.failure], [next.generation, null]);
    assert.equal(statusOf(report), 'False AccountingDown');
    assert.equal(report.drifted, true);
    slurmdbd.back();
    assert.equal(statusOf(await beta.apply(next)), 'True Ready');
    await converged([ada]);
  });

  await t.test('with slurmctld down it says so, and goes on with people', async () => {
    using slurmctld = without('slurmctld');
    const next = manifest([ada, bob]);
    const report = await beta.apply(next);
    assert.equal(report.manifestGeneration, next.generation);
    assert.equal(statusOf(report), 'False ControllerDown');
    assert.equal(report.controlPlaneReady, false);
    assert.deepEqual([report.runningJobs, report.machines], [undefined, undefined], 'unknown is not none');
    slurmctld.back();
    assert.equal(statusOf(await beta.apply(next)), 'True Ready');
    await converged([ada, bob]);
    assert.equal(await shell('head', 'runuser -u bob -- srun -Q id -un 2> /dev/null'), 'bob');
  });

  if (!isFull) return;

  await t.test('a host that answers again while nodes restart gets the list meanwhile', async () => {
    using sshd = without('sshd-a1');
    const [reached, released] = [join(lab.directory, 'reached'), join(lab.directory, 'released')];
    const { restartCompute } = lab.settings().commands ?? {};
    const wait = `touch ${reached}; until [ -f ${released} ]; do sleep 0.1; done; ${restartCompute}`;
    const slow = driverOf(lab, { commands: { ...lab.settings().commands, restartCompute: wait } });
    await slow.observe();
    const next = manifest([ada], { slurmExtraConfig: 'SlurmdTimeout=65' });
    const applying = slow.driver.apply(next, inTime());
    await eventually(async () => existsSync(reached), Boolean);
    assert.deepEqual(await accountsOn(lab, 'a1'), ['ada:30001', 'bob:30002', 'cy:30003']);
    sshd.back();
    await eventually(slow.observe, ({ waiting }) => /answers/.test(waiting?.[0]?.message ?? ''));
    writeFileSync(released, '');
    await applying;
    assert.equal(await shell('a1', `awk -F: '$1 == "bob" { print $8 }' /etc/shadow`), '1');
    // One that never had a configuration shares its files, and does not take it back before the controller has tried that.
    const before = lab.pid('slurmctld');
    await beta.converge(manifest([ada, bob]));
    assert.notEqual(lab.pid('slurmctld'), before);
    await converged([ada, bob]);
  });

  await t.test('a full disk is said in words, nothing is lost, and it converges', async () => {
    const full = 'mount -t tmpfs -o size=40k none /home && head -c 100k /dev/zero > /home/fill';
    await shell('head', full);
    await shell(
      'a2',
      'mount -t tmpfs -o size=16k none /var/lib/andromeda-slurm && head -c 100k /dev/zero > /var/lib/andromeda-slurm/fill',
    );
    const next = manifest([ada, bob, cy]);
    const report = await beta.apply(next);
    await shell('head', 'umount /home');
    await shell('a2', 'umount /var/lib/andromeda-slurm');
    assert.ok(report.manifestGeneration < next.generation, 'not in force on the login node');
    assert.match(report.failure ?? '', /\/home\/bob cannot be made: .*No space left/);
    assert.match(report.failure ?? '', /The script on 0x7f0000a2:\d+ ended with 1: .*(cannot be|No space)/);
    await beta.converge(next);
    await converged([ada, bob, cy]);
  });

  await t.test('cut off at any step, here or on a host, it converges with the next pass', async () => {
    const others = Array.from({ length: 12 }, (_, index) => person(`p${index}`, 30_100 + index));
    for (const [index, afterMs] of [200, 600, 1_200, 1_900].entries()) {
      const people = index % 2 === 0 ? [ada, ...others] : [ada, bob, others[index] ?? ada];
      const cut = new AbortController();
      // The client is killed; what runs on a host is ended there.
      setTimeout(() => cut.abort(), afterMs);
      const ending = lab.on(
        index % 3 === 0 ? 'head' : 'a1',
        `sleep ${afterMs / 1000}; pkill -KILL -f "sh -s"; true`,
      );
      await beta.driver.apply(manifest(people), cut.signal).catch(() => {});
      await ending;
    }
    // What a script leaves that is killed while it makes homes.
    for (const host of hosts) await shell(host, 'mkdir -p "/home/.andromeda-99999-$(uname -n)/zoe"');
    const fresh = driverOf(lab);
    await fresh.converge(manifest([ada, bob, ...others.slice(0, 3)]));
    await converged([ada, bob, ...others.slice(0, 3)]);
    for (const host of hosts) assert.equal(await shell(host, 'ls -A /home | grep andromeda'), '');
  });

  await t.test('two changes at once come one after the other on each host', async () => {
    const [one, two] = [manifest([ada, bob]), manifest([ada, cy])];
    const other = driverOf(lab);
    await Promise.all([beta.observe(), other.observe()]);
    await Promise.all([beta.driver.apply(one, inTime()), other.driver.apply(two, inTime())]);
    await beta.converge(two);
    await converged([ada, cy]);
  });

  await t.test('200 people at once', async () => {
    const people = Array.from({ length: 200 }, (_, index) => person(`q${index}`, 31_000 + index));
    // In one pass, whatever the machine is busy with.
    await beta.converge(manifest(people));
    await converged(people);
    // What was there before the last edit: everyone came with one, for each costs many flushes of the disk.
    for (const host of hosts) assert.equal(await shell(host, 'grep -c ^q /etc/passwd-'), '0', host);
    assert.equal(await shell('head', 'runuser -u q199 -- srun -Q id -un 2> /dev/null'), 'q199');
  });
});
