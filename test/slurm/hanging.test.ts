/** Hosts of a real Slurm cluster that hang, are silent, and come back; and one that does not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, becomes, eventually } from '../support/app.ts';
import { freePorts } from '../support/ports.ts';
import { keygen } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { isFull, noSlurm, startSlurmLab } from './lab.ts';
import { driverOf, inTime, manifest, person } from './people.ts';
import { accessList, optionsOf, permit, startService } from './service.ts';

test('hosts of a Slurm cluster that hang', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ LOGINS: 'bb1', HOMES: 'shared' });
  const { shell } = lab;
  const settings = { login: [{ name: 'login1', host: '0x7f001bb1', port: lab.port, hostKey: lab.hostKey }] };
  /** Does the one on a host, and the other to take it back, which is done at the end of a test that fails as well. */
  const until = async (host: string, begin: string, end: string) => {
    const { status, out } = await lab.on(host, begin);
    assert.equal(status, 0, `${host}: ${out}`);
    let isOver = false;
    const back = async () => {
      if (!isOver) await shell(host, end);
      isOver = true;
    };
    return { back, [Symbol.asyncDispose]: back };
  };
  /** Its sshd takes connections, and says nothing. */
  const silent = (host: string) => {
    const signal = (name: string) => `kill -${name} $(cat ${lab.directory}/run/sshd-${host}.pid)`;
    return until(host, signal('STOP'), signal('CONT'));
  };
  /** A program that scripts need never ends there, as on a file system that does not answer. */
  const stuck = (host: string) => {
    const program = '/usr/bin/mktemp';
    const hang = `printf '#!/bin/sh\nexec sleep 997\n' > /run/stuck; chmod 755 /run/stuck; mount --bind /run/stuck ${program}`;
    return until(host, hang, `umount ${program}; pkill -f 'sleep 997'`);
  };

  if (isFull)
    await t.test('no change waits for a compute node that is being looked at and hangs', async () => {
      const { driver } = driverOf(lab, settings);
      await driver.observe(inTime());
      await using _ = await stuck('a1');
      const patient = driver.observe(inTime());
      const superseded = driver.observe(inTime(), AbortSignal.abort());
      const first = await Promise.race([patient.then(() => 'patient'), superseded.then(() => 'superseded')]);
      assert.equal(first, 'superseded');
      const { controlPlaneReady, loginNodes } = await superseded;
      assert.deepEqual([controlPlaneReady, loginNodes[0]?.up], [true, true]);
      await patient;
      await driver.close();
    });

  if (isFull)
    await t.test('a retired node is not waited for; one that was waited for before is known', async () => {
      const ada = person('ada', 30_001);
      const beta = driverOf(lab, settings);
      const first = manifest([ada]);
      await beta.apply(first);
      await eventually(beta.observe, ({ waiting }) => waiting?.length === 0);
      await using sshd = await silent('a2');
      const next = manifest([ada, person('bob', 30_002)]);
      await beta.apply(next);
      const report = await eventually(
        beta.observe,
        ({ waiting }) => waiting?.length === 1 && /cannot be reached/.test(waiting[0]?.message ?? ''),
      );
      const lack = { host: 'a2', generation: first.generation, listVersion: first.listVersion };
      const named = (waiting = report.waiting) => waiting?.map(({ message: _, ...one }) => one);
      assert.deepEqual(named(), [lack]);
      assert.deepEqual(named((await driverOf(lab, settings, { last: report }).observe()).waiting), [lack]);
      const without = driverOf(lab, { ...settings, retired: ['a2'] });
      const retired = await without.apply(next);
      assert.deepEqual([retired.waiting, retired.failure], [[], null]);
      const gone = driverOf(lab, settings, { last: report });
      const conf = `${lab.directory}/etc/slurm.conf`;
      await shell('head', `sed -i.all '/^NodeName=a2/d; s/Nodes=a1,a2/Nodes=a1/' ${conf}`);
      lab.control('restart', 'slurmctld');
      const left = await eventually(gone.observe, ({ machines }) => machines?.length === 1);
      assert.deepEqual(left.waiting, [], 'Slurm has no such node any more');
      await shell('head', `mv ${conf}.all ${conf}`);
      lab.control('restart', 'slurmctld');
      await eventually(gone.observe, ({ machines }) => machines?.length === 2);
      await sshd.back();
      await becomes(async () => {
        await without.apply(next);
        return shell('a2', 'grep -c ,,,,7b6f1f0e /etc/passwd');
      }, '0');
      await without.driver.release(inTime());
    });

  const [metrics] = await freePorts(1);
  const measured = { metrics: { listen: `127.0.0.1:${metrics}` } };
  await using service = await startService(lab, { rollout: 'live', ...settings }, measured);
  using abe = await sshPerson(service, 'abe');
  const figure = (name: string, value: number) =>
    eventually(
      async () => (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text(),
      (text) => RegExp(`^${name}\\{.*\\} ${value}$`, 'm').test(text),
    );
  const isReady = () => eventually(abe.access, ({ ready }) => ready === true);

  await t.test('an open session outlives that its login node does not answer its operator', async () => {
    const open = abe.start([abe.target, 'echo in; while read -r line; do echo "$line"; done']);
    assert.equal(await open.said, 'in\n');
    await using sshd = await silent('bb1');
    const reports = new Set<unknown>();
    const down = await eventually(abe.access, (now) => {
      reports.add(now['observed_at']);
      return now['ready'] === false;
    });
    assert.equal(down['reason'], 'gateway_unavailable');
    await figure('andromeda_login_nodes_down', 1);
    // The last one before, one that may have been under way, and those until the second answer is given up: a node that did not
    // answer is waited for less long than its connection takes to fail, so that one report may come between the two.
    assert.ok(reports.size <= 5, `known after ${reports.size} reports`);
    await eventually(abe.access, (now) => now['observed_at'] !== down['observed_at']);
    open.child.stdin?.write('still here\n');
    await sshd.back();
    await isReady();
    await figure('andromeda_login_nodes_down', 0);
    open.child.stdin?.end('and after\n');
    const { status, out, err } = await open.ended;
    assert.deepEqual([status, out, err], [0, 'in\nstill here\nand after\n', '']);
    assert.equal((await abe.ssh([abe.target, 'hostname'])).out, 'bb1\n');
  });

  await t.test('whose access ends is out at once where a host answers, and else later', async () => {
    const { body: me } = await service.business('/me', { as: 'eve' });
    await permit(service, { orgId: abe.orgId, userId: me.user.id }, ['clusters.ssh']);
    using eve = await sshPerson(service, 'eve');
    const list = () => accessList(service, abe.orgId);
    const isLocked = async (host: string) =>
      (await shell(host, `awk -F: '$1 == "eve" { print $8 }' /etc/shadow`)) === '1';
    await eventually(list, ({ state }) => state === 'converged');
    await shell('a1', 'setsid runuser -u eve -- sleep 998 > /dev/null 2>&1 < /dev/null &');
    await using host = await stuck('a1');
    await permit(service, eve, []);
    for (const other of ['head', 'bb1', 'a2']) await becomes(() => isLocked(other), true);
    const waiting = await eventually(list, (body) => body.waiting_hosts?.length === 1);
    assert.deepEqual([waiting.state, waiting.waiting_hosts[0].host], ['accepted', 'a1']);
    await figure('andromeda_sync_waiting_hosts', 1);
    assert.equal(await isLocked('a1'), false, 'which is why');
    const named = await eventually(list, (body) =>
      /does not answer in time/.test(body.waiting_hosts[0].message),
    );
    assert.equal(named.waiting_hosts[0].since, waiting.waiting_hosts[0].since);
    const memberState = async () => {
      const path = `/organizations/${abe.orgId}/access?user_ids=${eve.userId},${abe.userId}`;
      const { people } = (await service.business(path, { as: 'ada' })).body;
      return people.map(
        (one: { clusters: { slurm: { state: string; message?: string } }[] }) => one.clusters[0]?.slurm,
      );
    };
    const [ofEve, ofAbe] = await memberState();
    assert.deepEqual([ofEve.state, ofAbe.state, ofAbe.message], ['pending', 'applied', undefined]);
    assert.match(ofEve.message, /^Hosts that have not confirmed it: a1 since .* does not answer in time/);
    assert.equal((await optionsOf(service, abe.orgId)).state, 'available');
    assert.equal((await abe.ssh([abe.target, 'hostname'])).out, 'bb1\n', 'logins go on');
    const body = { public_key: keygen('-t', 'ed25519').publicKey };
    assert.equal((await service.write('/me/ssh-keys', { as: 'abe', body })).status, 201);
    const own = await eventually(abe.access, (now) => now['ready'] === true && 'waiting_hosts' in now);
    assert.equal((own['waiting_hosts'] as { host: string }[]).map(({ host }) => host).join(), 'a1');
    service.advance(61_000);
    await becomes(
      async () =>
        (await service.business('/operator/problems', { as: 'root' })).body.problems.some(
          (problem: { message: string }) => /not everywhere.* a1 since/.test(problem.message),
        ),
      true,
    );
    await host.back();
    await eventually(list, ({ state }) => state === 'converged');
    await figure('andromeda_sync_waiting_hosts', 0);
    assert.equal(await isLocked('a1'), true);
    assert.equal(await shell('a1', 'pgrep -u eve'), '');
    assert.equal((await list()).waiting_hosts, undefined);
    assert.equal((await memberState())[0].state, 'applied');
  });

  if (!isFull) return;

  await t.test('without its controller a cluster is soon unknown, and people log in', async () => {
    const options = () => optionsOf(service, abe.orgId);
    const machines = async () => {
      const path = `/clusters/${alpha}/machines?businessOrgId=${abe.orgId}`;
      const { items } = (await service.platform(path, { as: 'ada' })).body;
      return items.map((one: { observed: { freshness: string } }) => one.observed.freshness).join();
    };
    await eventually(options, ({ state }) => state === 'available');
    await using controller = await silent('head');
    await eventually(options, ({ scheduler }) => scheduler.ready?.reason === 'ControllerUnreachable');
    service.advance(121_000);
    const before = await abe.access();
    await eventually(abe.access, (now) => now['observed_at'] !== before['observed_at']);
    const { state, reason } = await options();
    assert.deepEqual([state, reason], ['unknown', 'observation_stale']);
    assert.equal(await machines(), 'stale,stale');
    assert.equal((await abe.ssh([abe.target, 'hostname'])).out, 'bb1\n');
    const others = await Promise.all(['bb1', 'a1', 'a2'].map((host) => silent(host)));
    await eventually(abe.access, ({ reason }) => reason === 'gateway_unavailable');
    const last = await eventually(abe.access, (now) => now['observation_current'] === true);
    service.advance(121_000);
    await eventually(abe.access, (now) => now['observation_current'] === false);
    assert.equal((await abe.access())['observed_at'], last['observed_at']);
    for (const one of [controller, ...others]) await one.back();
    await eventually(options, ({ state }) => state === 'available');
    assert.equal(await machines(), 'fresh,fresh');
    await isReady();
  });
});
