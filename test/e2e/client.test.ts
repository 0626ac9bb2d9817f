/** The commands people use every day, against the whole service, with real ssh. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createMachine, type Result, sessionAt } from '../cli/harness.ts';
import { alpha, beta, startTestApp, type TestApp } from '../support/app.ts';
import { fails, finished } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { keygenFingerprint } from '../support/ssh-keys.ts';

const withoutSsh = existsSync('/usr/bin/ssh') ? false : 'the OpenSSH client is not installed';

/** The machine of somebody who is signed in. */
async function person(t: TestContext, app: TestApp, platformUrl: string, name: string) {
  const machine = await createMachine(t);
  const accessToken = await app.issuer.token(name);
  await machine.writeProfile([
    sessionAt(platformUrl, { businessUrl: app.businessUrl, issuer: app.issuer.url, accessToken }),
  ]);
  const home = dirname(machine.directory);
  const run = (...args: string[]): Promise<Result> => machine.run(args);
  const ok = async (...args: string[]) => {
    const { status, stdout, stderr } = await run(...args);
    assert.equal(status, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  return { run, ok, home, machine };
}

test('from no key to a session, and back', { skip: withoutSsh }, async (t) => {
  const [port] = await freePorts(1);
  const platformUrl = `http://127.0.0.1:${port}`;
  await using app = await startTestApp({
    config: { platform: { listen: `127.0.0.1:${port}` } },
    identity: { kubernetes: { clientId: 'kubectl', usernameClaim: 'email' } },
  });
  const ada = await person(t, app, platformUrl, 'ada');
  const bob = await person(t, app, platformUrl, 'bob');

  // Clusters, machines and storage are seen.
  await bob.ok('wait', 'cluster', 'alpha', '--timeout', '20s');
  assert.match(await bob.ok('clusters', 'list'), /\nalpha +active +sunk .* physics +room-1 +7b6f/);
  assert.match(await bob.ok('clusters', 'show', 'alpha'), /\nScheduler ready +yes\n/);
  assert.match(await bob.ok('machines', 'alpha'), /\nalpha-\S+ +registered +yes +idle +8 /);
  assert.match(await bob.ok('storage'), /^CLUSTER .*\nalpha /);

  // Ssh says that there is no key; once one is added and in place, it logs in.
  const before = await bob.run('ssh', 'alpha', 'true');
  const sentence = 'You have no SSH key registered; `andromeda keys add` registers one.\n';
  assert.deepEqual([before.status, before.stderr], [1, sentence]);
  const key = join(bob.home, '.ssh/id_ed25519');
  mkdirSync(join(bob.home, '.ssh'), { mode: 0o700 });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const fingerprint = keygenFingerprint(readFileSync(`${key}.pub`, 'utf8'));
  const added = await bob.ok('keys', 'add');
  assert.ok(added.includes(`\n${fingerprint}  active `), added);
  assert.equal(await bob.ok('wait', 'key', '--timeout', '20s'), '');
  const session = await bob.run('ssh', 'alpha', 'echo in; exit 3');
  assert.deepEqual([session.stdout, session.stderr, session.status], ['in\n', '', 3]);
  const prefix = await bob.run('ssh', alpha.slice(0, 8), '-T', '-o', 'LogLevel=ERROR', 'exit 4');
  assert.equal(prefix.status, 4, prefix.stderr);

  // Standard input goes through, and a host key that is another is refused.
  const knownHosts = join(bob.home, 'andromeda/known_hosts');
  const right = readFileSync(knownHosts, 'utf8');
  assert.match(right, new RegExp(`^${alpha} ssh-ed25519 \\S+\n$`));
  const config = join(bob.home, '.ssh/andromeda.conf');
  const written = await bob.run('ssh-config', '--write');
  assert.match(written.stderr, /andromeda\.conf has andromeda-alpha, andromeda-alpha-job\.\n/);
  const plain = async (program: string, ...args: string[]) => {
    const child = spawn(program, ['-F', config, '-o', 'BatchMode=yes', ...args], { timeout: limit(15_000) });
    return (await finished(child)).status;
  };
  assert.equal(await plain('ssh', 'andromeda-alpha', 'exit 5'), 5);
  const file = join(bob.home, 'data');
  writeFileSync(file, 'x'.repeat(100_000));
  assert.equal(await plain('scp', file, 'andromeda-alpha:data'), 0);
  assert.equal(await plain('ssh', 'andromeda-alpha', 'test "$(wc -c < data)" -eq 100000 && rm data'), 0);
  writeFileSync(
    knownHosts,
    right.replace(/AAAA\S+/, 'AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB'),
  );
  assert.equal(await plain('ssh', 'andromeda-alpha', 'true'), 255);
  assert.equal(
    await bob.ok('ssh', 'alpha', 'cat < /dev/null; echo again'),
    'again\n',
    'the API says which is right',
  );

  // Doctor logs in with the configuration that the person has, and says what ssh says of it.
  const [bin, sshConfig] = [join(bob.home, 'bin'), join(bob.home, 'ssh_config')];
  mkdirSync(bin);
  // ssh reads the configuration of the account, whatever HOME is.
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nexec /usr/bin/ssh -F '${sshConfig}' "$@"\n`, { mode: 0o755 });
  const said = async (settings: string) => {
    writeFileSync(sshConfig, `Host *\n  ${settings}\n`);
    const env = { PATH: `${bin}:${process.env.PATH}` };
    return (await bob.machine.run(['doctor', 'alpha'], { env })).stdout;
  };
  const long = join(bob.home, 'x'.repeat(108 - 17 - bob.home.length - 1));
  for (const settings of ['', `ControlMaster auto\n  ControlPath ${long.slice(0, -1)}`])
    assert.match(await said(settings), /^ok +ssh +A login to alpha works\.\n\nNothing is wrong\.$/m);
  const wrong: [settings: string, words: RegExp][] = [
    ['RemoteCommand /bin/false', /^warn +ssh +A login to alpha works, and runs '\/bin\/false' only/m],
    ['SessionType none', /A login to alpha gets no shell: SessionType is none\./],
    ['ProxyCommand false', /A login to alpha fails: .*(closed|reset|broken)/i],
    ['HostKeyAlgorithms ecdsa-sha2-nistp256', /A login to alpha fails: .*no matching host key type found/],
    [
      'LogLevel QUIET\n  IdentityAgent none\n  IdentitiesOnly yes\n  PubkeyAuthentication no',
      /fails: .*denied/,
    ],
    ['Foo bar', /ssh cannot use its configuration: .*ssh_config: line 2: Bad configuration option: foo/],
    [`ControlMaster auto\n  ControlPath ${long}`, /ControlPath is \S+x, and has room for 90 bytes\./],
  ];
  for (const [settings, words] of wrong) {
    const text = await said(settings);
    assert.match(text, words);
    assert.match(text, /\n(Do this first|You may want to do this): .*~\/\.ssh\/config/);
  }
  execFileSync('ssh-keygen', ['-q', '-p', '-N', 'secret words', '-f', key]);
  assert.match(await said(''), /^ok +ssh +A login to alpha was tried as far as the passphrase of /m);
  const back = ['-q', '-p', '-P', 'secret words', '-N', '', '-f', join(bob.home, '.ssh/id_ed25519')];
  execFileSync('ssh-keygen', back);

  // A login shell and a permission are in place when wait has ended.
  assert.equal(await bob.ok('shell', 'set', '/bin/sh'), 'Your login shell is /bin/sh.\n');
  await bob.ok('wait', 'key', '--cluster', 'alpha', '--timeout', '20s');
  assert.equal(await bob.ok('ssh', 'alpha', 'echo $0'), '/bin/sh\n');
  const forbidden = await bob.run('members', 'grant', 'eve@physics.example', 'clusters.ssh');
  assert.equal(forbidden.status, 4, forbidden.stderr);
  const eve = 'eve@physics.example';
  await ada.ok('members', 'grant', eve, 'clusters.ssh', 'clusters.read');
  await ada.ok('wait', 'permission', eve, '--timeout', '20s');
  const { default_org_id: org } = (await app.business('/me', { as: 'ada' })).body;
  const there = await app.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'ada' });
  assert.ok(there.body.users.some(({ username }: { username: string }) => username === 'eve'));
  assert.match(await ada.ok('members', 'revoke', eve, 'clusters.ssh'), /\nmember +clusters\.read +user_/);
  await ada.ok('wait', 'permission', eve, '--timeout', '20s');
  assert.match(
    await ada.ok('members', 'list', '--permissions'),
    /\neve@\S+ +member +eve +clusters\.read +user_/,
  );

  // A kubeconfig is merged, a Slurm configuration set and got.
  const kubeconfig = join(ada.home, 'kube/config');
  await ada.ok('kubeconfig', 'beta', '--merge', kubeconfig);
  assert.match(readFileSync(kubeconfig, 'utf8'), new RegExp(`current-context: "?${beta}`));
  const yaml = join(ada.home, 'slurm.yaml');
  writeFileSync(yaml, 'slurmExtraConfig: |\n  MaxArraySize=1001\n');
  await ada.ok('slurm-config', 'set', 'alpha', '-f', yaml);
  assert.equal(await ada.ok('slurm-config', 'get', 'alpha'), readFileSync(yaml, 'utf8'));
  writeFileSync(yaml, 'prolog: { a.sh: "echo no" }\n');
  fails(await ada.run('slurm-config', 'set', 'alpha', '-f', yaml), 1, /^\S+slurm\.yaml: .*a\.sh/);

  // A revocation is in place when wait has ended, and no one logs in with the key.
  await bob.ok('keys', 'revoke', fingerprint, '--reason', 'lost laptop');
  await bob.ok('wait', 'key', '--timeout', '20s');
  const after = await bob.run('ssh', 'alpha', 'true');
  // The key that lies here cannot be registered again.
  assert.match(
    after.stderr,
    /^You have no SSH key registered that lets you in: `ssh-keygen -t ed25519 -f (\S+)`, and then `andromeda keys add \1\.pub`\.\n$/,
  );
  const again = await bob.run('keys', 'add');
  assert.equal(again.status, 6, again.stderr);
});
