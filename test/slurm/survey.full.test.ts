/** A survey of a lab whose people come from a directory, on hosts that know it and hosts that do not. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { mergeSurvey } from '../../src/domain/slurm/survey.ts';
import { surveySlurm } from '../../src/sync/slurm/survey.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { noDirectory, startDirectory, uidOf } from './directory.ts';
import { startSlurmLab } from './lab.ts';
import { clusterId } from './people.ts';

import './survey.test.ts';

test('a survey of people from a directory, which cannot be listed', { skip: noDirectory }, async () => {
  using lab = startSlurmLab();
  const directory = await startDirectory(lab, ['head']);
  // A home, an association, a member of a group: each is a name to ask for.
  const sshd = `sed -i 's|^AuthorizedKeysFile .*gateway.*|AuthorizedKeysFile .ssh/authorized_keys|' ${lab.directory}/etc/sshd-head.conf`;
  const home = `mkdir -p /home/dn01/.ssh; echo '${newPublicKey()}' > /home/dn01/.ssh/authorized_keys; chown -R ${uidOf('dn01')}:33000 /home/dn01; chmod 700 /home/dn01`;
  await lab.shell(
    'head',
    `${sshd}; ${home}; sacctmgr -i add account lab; sacctmgr -i add user dn02 account=lab`,
  );
  await lab.shell('head', "sed -i 's/^sudo:.*/sudo:x:27:dn04/' /etc/group");
  // One who has the same name in files of a node, with another number.
  await lab.shell('a1', 'echo "dn01:x:1500:1500::/home/dn01:/bin/bash" >> /etc/passwd');
  const survey = async (...names: string[]) => {
    const dataDir = join(lab.directory, 'data/survey');
    const options = { clusterId, organization: 'physics', settings: lab.settings(), dataDir, names };
    return mergeSurvey(await surveySlurm(options), { manager: 'root', gatewayKeys: [] });
  };
  const found = await survey('dn03', 'dn05', 'unknown');
  const people = Object.fromEntries(
    found.people.map(({ username, source, uid, group, groups, verdict }) => [
      username,
      [source, uid, group, groups.join(), verdict],
    ]),
  );
  assert.deepEqual(people['dn01'], ['directory', uidOf('dn01'), 'users', 'robotics,staff,vision', 'differs']);
  assert.deepEqual(people['dn02'], [
    'directory',
    uidOf('dn02'),
    'users',
    'robotics,staff,vision',
    'needs_key',
  ]);
  assert.deepEqual(people['dn03'], ['directory', uidOf('dn03'), 'users', 'docker', 'privileged']);
  assert.deepEqual(people['dn04']?.slice(3), ['sudo', 'privileged']);
  assert.deepEqual(people['dn05']?.slice(3), ['', 'needs_key']);
  assert.equal(people['unknown'], undefined);
  assert.equal(found.people.find(({ username }) => username === 'dn01')?.keys.length, 1);
  assert.match(found.notices.join('\n'), /: people come from a directory \(sssd ldap\)$/m);

  // A directory that does not answer: those whom sssd has in its cache, and no word of the others.
  await directory.hang();
  const silent = await survey('dn06');
  assert.ok(silent.people.some(({ username }) => username === 'dn01'));
  assert.ok(!silent.people.some(({ username }) => username === 'dn06'));
  assert.deepEqual(
    silent.hosts.map(({ fault }) => fault),
    [null, null, null],
  );
  await directory.goOn();
});
