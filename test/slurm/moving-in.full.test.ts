/** A lab with people in it moves in by a lab file, works through the gateway, loses a person and a node, and is handed back. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../src/domain/clusters/lab-member.ts';
import { alpha, becomes, eventually, startTestApp } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { filledHosts, fillLab } from './filled-lab.ts';
import { noSlurm, startSlurmLab } from './lab.ts';

test('a Slurm lab that people use moves in, and out again', { skip: noSlurm }, async (t) => {
  using lab = startSlurmLab({ HOMES: 'shared' });
  const { shell } = lab;
  const { accounts, job, keys } = await fillLab(lab);
  const onAll = async (command: string) => Promise.all(filledHosts.map(async (host) => shell(host, command)));
  const everywhere = (text: string) => filledHosts.map(() => text);
  const files = () => onAll('cd /etc; cat passwd group shadow gshadow subuid subgid');
  const associations = () =>
    shell(
      'head',
      'sacctmgr -nP show assoc format=account,user,share,grpsubmit,grpjobs; sacctmgr -nP show user withcoord',
    );
  await onAll(
    'mkdir /var/lib/first; cd /etc; cp -a passwd group shadow gshadow subuid subgid /var/lib/first',
  );
  const first = { files: await files(), associations: await associations() };

  const owner: LabMember = { email: 'zoe@physics.example', role: 'owner', username: 'zoe' };
  const physics = (members: LabMember[]) => [{ slug: 'physics', name: 'Physics', members }];
  const users: Lab['users'] = [{ email: 'root@physics.example', name: 'Root', staff: ['staff.operate'] }];
  await using service = await startTestApp({
    lab: { users, organizations: physics([owner]) },
    sync: { intervalSeconds: 4 },
    config: { uids: { base: 40_000 }, clusters: { secretsDir: lab.directory } },
  });
  const { body: gateway } = await service.business('/operator/gateway', { as: 'root' });
  writeFileSync(join(lab.directory, 'etc/gateway.pub'), `${gateway.public_key}\n`);

  const member = (username: string, rest: Partial<LabMember> = {}): LabMember => {
    const { uid, gid = uid, keys: lines = [] } = accounts[username] ?? { uid: 0 };
    const own = { email: `${username}@physics.example`, role: 'member' as const, username, uid, gid };
    const listed = lines.filter((line) => line.startsWith('ssh-ed25519'));
    return { ...own, permissions: ['clusters.read', 'clusters.ssh'], keys: listed, ...rest };
  };
  const slurm = lab.settings({ adopt: true, rollout: 'live', accounting: { account: 'lab' } });
  const wanted = (members: LabMember[]): Lab => ({
    organizations: physics([owner, ...members]),
    clusters: [{ name: 'alpha', id: alpha, organization: 'physics', scheduler: 'sunk', slurm }],
  });
  const everyone = ['ada', 'bob', 'cleo', 'dan', 'eve', 'u0'].map((name) => member(name));
  const apply = async (body: Lab) => {
    const reply = await service.write('/operator/lab', { as: 'root', body: { lab: body } });
    assert.equal(reply.status, 200, JSON.stringify(reply.body));
    return reply.body;
  };
  const clusterOf = async () =>
    (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0];
  const expiryOf = (name: string) => onAll(`awk -F: '$1 == "${name}" { print $8 }' /etc/shadow`);

  await t.test('the plan names numbers and keys, and what differs is named once it is applied', async () => {
    const request = { as: 'root', method: 'POST', body: { lab: wanted(everyone) } };
    const details = JSON.stringify((await service.business('/operator/lab/plan', request)).body);
    assert.match(details, /username ada; uid 1001; gid 100; clusters\.read, clusters\.ssh; keys SHA256:/);
    await apply(wanted(everyone));
    const said = await eventually(clusterOf, (one) => /eve/.test(JSON.stringify(one)));
    for (const one of [
      /the account cleo has the uid 1204 and the gid 1004 here, and not 1004 and 1004/,
      /dan is in the group sudo, and not in adoptPrivileged/,
      /the home of eve is .home.old.eve \(ln -s/,
    ])
      assert.match(JSON.stringify(said), one);
    assert.deepEqual((await apply(wanted(everyone))).changes, []);
  });

  using bob = await sshPerson(service, 'bob', keys.bob);
  await t.test('people log in and submit with the numbers and files of before, and jobs ran on', async () => {
    const seen = await bob.ssh([bob.target, 'id -u; id -g; cat file; srun -Q id -un']);
    assert.deepEqual([seen.out, seen.err], ['1003\n1003\nbob was here\nbob\n', '']);
    assert.equal(await lab.stateOf(job), 'RUNNING');
    assert.deepEqual(await files(), first.files);
    assert.match(await associations(), /^lab\|ada\|1\|\|$/m);
  });

  await t.test('a shell that is chosen here is set on all hosts', async () => {
    await service.write('/me/login-preferences', { as: 'ada', method: 'PUT', body: { shell: '/bin/dash' } });
    const shells = async () => (await onAll('getent passwd ada | cut -d: -f7')).join();
    await becomes(shells, everywhere('/bin/dash').join());
  });

  await t.test('who leaves is locked, also on a node that was installed anew', async () => {
    await apply(wanted([member('bob', { permissions: [] })]));
    await becomes(async () => (await expiryOf('bob')).join(), '1,1,1');
    assert.equal((await bob.ssh([bob.target, 'true'])).status, 255);
    await becomes(() => lab.stateOf(job), 'gone');
    await shell('a1', 'cp -a /var/lib/first/* /etc; rm -rf /var/lib/andromeda-slurm');
    await becomes(async () => (await expiryOf('bob')).join(), '1,1,1');
  });

  await t.test('handed back, the hosts are as they were but for who left', async () => {
    const path = `/operator/clusters/${alpha}/release?hand_back=true`;
    assert.equal((await service.write(path, { as: 'root' })).status, 200);
    await eventually(clusterOf, (one) => one.cluster.state === 'released');
    const left = (text: string) => text.replace(/^(bob:\*:19000:0:99999:7::):/m, '$11:');
    assert.deepEqual(await files(), first.files.map(left));
    assert.deepEqual(await onAll('ls /var/lib/andromeda-slurm 2> /dev/null'), everywhere(''));
    const closed = first.associations.replace('lab|bob|1||', 'lab|bob|1|0|0');
    assert.equal(await associations(), closed);
  });
});
