/**
 * Hosts that are taken out of a real Slurm cluster: cleaned, or named as left behind. And what a host says of its accounts: without
 * notes, after another of that name, and when broken.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFull, noSlurm, startSlurmLab } from './lab.ts';
import { accountsOn, assertConverged, driverOf, inTime, manifest, person, state } from './people.ts';

const hosts = ['head', 'bb1', 'a1'];
const ada = person('ada', 30_001);
const bob = person('bob', 30_002);
const cy = person('cy', 30_003);
const dee = person('dee', 30_040, { isAdopted: true });

test('hosts that leave a Slurm cluster, and accounts as a host finds them', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ LOGINS: 'bb1', NODES: 'a1' });
  const { shell } = lab;
  const head = { name: 'login1', host: '127.0.0.1', port: lab.port, hostKey: lab.hostKey };
  const other = { ...head, name: 'login2', host: '0x7f001bb1' };
  const beta = driverOf(lab, { login: [head, other] });
  const everywhere = (command: string) => Promise.all(hosts.map((host) => shell(host, command)));

  // One who was on that host before, and chose another shell since.
  await shell('bb1', "useradd -u 30040 -U -M -s /bin/sh -p '*' dee");
  await beta.apply(manifest([ada, bob, dee]));
  dee.shell = '/bin/dash';
  await beta.apply(manifest([ada, bob, dee]));
  const shellOfDee = () => shell('bb1', 'getent passwd dee | cut -d : -f 7');
  assert.equal(await shellOfDee(), '/bin/dash');

  if (isFull)
    await t.test('a host under another name is the same host', async () => {
      const before = await accountsOn(lab, 'bb1');
      const address = await shell('head', "getent hosts bb1 | awk '{ print $1 }'");
      const renamed = driverOf(lab, { login: [head, { ...other, host: address }] });
      await renamed.converge(manifest([ada, bob, dee]));
      assert.deepEqual(await accountsOn(lab, 'bb1'), before);
      await driverOf(lab, { login: [head, other] }).apply(manifest([ada, bob, dee]));
    });

  await t.test('a host that was taken out is named while it is away, then cleaned', async () => {
    const without = driverOf(lab, { login: [head] });
    lab.control('stop', 'sshd-bb1');
    const next = manifest([ada, bob, dee], { slurmExtraConfig: 'MaxJobCount=5000' });
    const report = await without.apply(next);
    const left = /0x7f001bb1:\d+ is not a host of this cluster any more and still has .* of ours: .*reached/;
    assert.match(report.failure ?? '', left);
    assert.equal(report.manifestGeneration, next.generation);
    await assert.rejects(without.driver.release(inTime()), left);
    await without.apply(next);
    lab.control('start', 'sshd-bb1');
    assert.equal((await without.observe()).drifted, true);
    await without.converge(next);
    assert.deepEqual(await accountsOn(lab, 'bb1'), ['dee:30040']);
    assert.equal(await shellOfDee(), '/bin/sh');
    await shell('bb1', 'userdel dee');
    assert.equal(
      await shell('bb1', 'ls -A /var/lib/andromeda-slurm 2> /dev/null; ls /home'),
      'ada\nbob\ndee',
    );
    // It shares its slurm.conf with the hosts in use.
    assert.match(await shell('head', `cat ${lab.directory}/etc/slurm.conf`), /MaxJobCount=5000/);
    await assertConverged(lab, ['head', 'a1'], [ada, bob, dee]);
    await without.driver.release(inTime());
    assert.deepEqual(await accountsOn(lab, 'head'), []);
  });

  await t.test('a host that lost its notes knows its own accounts, and no others', async () => {
    const configuration = { slurmExtraConfig: 'MaxJobCount=5000', controllerEtc: { 'my.conf': 'A=1\n' } };
    const commands = { ...lab.settings().commands, restartLogin: 'true' };
    const settings = { login: [head, other], rollout: 'restart' as const, commands };
    await beta.apply(manifest([ada, bob, cy], configuration));
    await everywhere(
      `rm -rf /var/lib/andromeda-slurm
       useradd -u 30010 -U -M -c Andromeda -d /srv/zed zed
       useradd -u 1510 -U -M -c Andromeda -d /home/yan yan
       useradd -u 30012 -U -M -c Andromeda,,,,another -d /home/xia xia`,
    );
    const fresh = driverOf(lab, settings);
    await fresh.converge(manifest([ada, bob], configuration));
    assert.deepEqual(fresh.ended.length, 2, 'one restart, for the person who left');
    for (const host of hosts) {
      const found = `awk -F: '$1 ~ /^(ada|bob|cy|zed|yan|xia)$/ { print $1 $8 }' /etc/shadow | sort`;
      // Who left meanwhile is locked.
      assert.equal(await shell(host, found), 'ada\nbob\ncy1\nxia\nyan\nzed', host);
      assert.equal(await shell(host, `cut -f 1 ${state}/accounts`), 'ada\nbob\ncy');
    }
    await everywhere(`rm -rf /var/lib/andromeda-slurm; userdel zed; userdel yan; userdel xia`);
    const again = driverOf(lab, settings);
    await again.converge(manifest([ada, bob], configuration));
    assert.deepEqual(again.ended, [], 'and no restart');
    await beta.apply(manifest([ada, bob, cy]));
    await assertConverged(lab, hosts, [ada, bob, cy]);
  });

  await t.test('who has the number of one who left by now loses no process', async () => {
    await beta.apply(manifest([ada, bob]));
    await shell('a1', 'userdel cy; useradd -u 30003 -U -M gus');
    await shell('a1', 'setsid runuser -u gus -- sleep 300 > /dev/null 2>&1 &');
    await beta.apply(manifest([ada, bob]));
    const end = 'pkill -u gus; while pgrep -u gus > /dev/null; do sleep 0.1; done; userdel gus';
    assert.equal(await shell('a1', `pgrep -c -u gus sleep; ${end}`), '1');
  });

  if (!isFull) return;

  await t.test('what is left of another of that name is not taken over', async () => {
    await shell(
      'head',
      `useradd -u 1520 -U -M -p x dan; usermod -aG staff dan; grep ^dan: /etc/subuid > /tmp/dan-${lab.port}
       sed -i /^dan:/d /etc/passwd; sed -i /^dan:/d /etc/group`,
    );
    await beta.converge(manifest([ada, bob, cy, person('dan', 30_020)]));
    const now = `id -Gn dan; awk -F: '$1 == "dan" { print $2 }' /etc/shadow; cd /etc; grep -hc ^dan: gshadow subuid`;
    assert.equal(await shell('head', now), 'dan\n*\n1\n1');
    assert.match(await shell('head', `cat /tmp/dan-${lab.port}; rm /tmp/dan-${lab.port}`), /^dan:\d+:65536$/);
    assert.equal(await shell('head', 'pwck -r -q 2>&1 | grep -E "ada|bob|cy|dan"; grpck -r 2>&1'), '');
  });

  await t.test('a person who could not log in at this moment is not ready', async () => {
    const people = [ada, bob, cy, person('dan', 30_020), person('eva', 30_021), person('fay', 30_022)];
    const next = manifest(people);
    await beta.apply(next);
    await shell(
      'bb1',
      `usermod -e 1 ada; usermod -L bob; chage -d 0 cy; chage -M 1 -d 2020-01-01 dan; usermod -s /bin/none eva
       sed -i /^fay:/d /etc/shadow`,
    );
    const said = await beta.observe();
    const named = (all: readonly { userId: string }[]) => all.map(({ userId }) => userId);
    assert.deepEqual(named(said.accounts), named(people));
    assert.equal(said.drifted, true);
    assert.deepEqual((await beta.converge(next)).accounts, []);
    const logIn = 'for n in ada bob cy dan eva fay; do su -s /bin/sh $n -c "id -un"; done';
    assert.equal(await shell('bb1', logIn), 'ada\nbob\ncy\ndan\neva\nfay');
  });

  await t.test('a home that became another’s makes not ready, and ends nothing', async () => {
    const next = manifest([ada, bob, cy]);
    await beta.apply(next);
    await shell('head', 'chown 1530 /home/ada; runuser -u ada -- setsid sleep 300 > /dev/null 2>&1 &');
    const report = await beta.apply(next);
    assert.match(report.failure ?? '', /\/home\/ada belongs to the uid 1530 and not to 30001/);
    assert.equal(report.accounts.map(({ userId }) => userId).join(), ada.userId);
    assert.equal(await shell('head', 'stat -c %u /home/ada; pgrep -c -u ada sleep'), '1530\n1');
    await shell('head', 'chown ada /home/ada; pkill -u ada');
    assert.deepEqual((await beta.apply(next)).accounts, []);
  });
});
