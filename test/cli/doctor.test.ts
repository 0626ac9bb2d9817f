/** `andromeda doctor` on a laptop: each thing that can be wrong is said, and what to do about the first. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { keygen, keygenFingerprint } from '../support/ssh-keys.ts';
import { access, accessRoute, uses } from './everyday/apis.ts';
import { createMachine } from './harness.ts';
import { startEnvironment } from './issuer.ts';
import { type Routes, signedIn } from './small-api.ts';

interface Finding {
  verdict: string;
  about: string;
  text: string;
  fix?: string;
}

test('without an address, or at one where nothing is, it says so first', async (t) => {
  const { run } = await createMachine(t);
  const nowhere = await run(['doctor']);
  assert.equal(nowhere.status, 1);
  assert.match(
    nowhere.stdout,
    /^wrong {2}address +None is known for the profile 'default'\.\nok +ssh +OpenSSH_/,
  );
  assert.match(nowhere.stdout, /\n\nDo this first: `andromeda auth login --url <platform_url>`/);
  const refused = await run(['doctor', '--url', 'http://127.0.0.1:1', '--quiet']);
  assert.equal(refused.status, 1);
  assert.match(
    refused.stdout,
    /^wrong {2}address +Could not reach http:\/\/127\.0\.0\.1:1: the connection was refused\./,
  );
  const wrong = await run(['doctor', '--url', 'ftp://x']);
  assert.deepEqual([wrong.status, wrong.stdout], [2, '']);
});

test('an address where no one is signed in yet, and one that is no platform', async (t) => {
  const { run } = await createMachine(t);
  const environment = await startEnvironment(t);
  const { stdout, status } = await run(['doctor', '--json', '--url', environment.url]);
  const { findings, todo } = JSON.parse(stdout) as { findings: Finding[]; todo: string };
  assert.equal(status, 1);
  const said = findings.map(({ verdict, about }) => `${verdict} ${about}`);
  assert.deepEqual(said, ['ok address', 'ok tls', 'ok clock', 'wrong sign-in', 'ok ssh'], stdout);
  assert.equal(todo, `\`andromeda auth login --url ${environment.url}\``);
  const elsewhere = await run(['doctor', '--quiet', '--url', `${environment.url}/elsewhere`]);
  assert.equal(elsewhere.status, 1);
  assert.match(elsewhere.stdout, /^wrong {2}address +\S+ answers, and not as a platform does/);
});

/** Somebody who is signed in and whose only key is the usual one, in that state at the service. */
async function withKey(t: TestContext, state: 'active' | 'revoked', more: Routes = {}) {
  const key = keygen('-t', 'ed25519');
  const fingerprint = keygenFingerprint(key.publicKey);
  const routes: Routes = {
    'GET /me': { user: { display_name: 'Ada', primary_email: 'ada@physics.example' } },
    'GET /me/ssh-keys': { keys: [{ id: 'k1', fingerprint, lifecycle_state: state }] },
    ...more,
  };
  const machine = await signedIn(t, routes);
  routes['GET /.well-known/oauth-protected-resource'] = {
    resource: machine.url,
    authorization_servers: [machine.url],
    svc_audiences: ['andromeda'],
    svc_business_url: machine.url,
    svc_cli_client_id: 'andromeda-cli',
    bearer_methods_supported: ['header'],
  };
  const home = join(machine.directory, '..');
  const file = join(home, '.ssh/id_ed25519');
  await mkdir(join(home, '.ssh'), { mode: 0o700 });
  await writeFile(`${file}.pub`, key.publicKey);
  await writeFile(file, key.privateKey, { mode: 0o600 });
  const about = async (wanted: string) => {
    const { stdout, stderr } = await machine.run(['doctor', '--json']);
    assert.equal(stderr, '');
    const { findings } = JSON.parse(stdout) as { findings: Finding[] };
    return findings.filter((one) => one.about === wanted);
  };
  return { ...machine, home, file, about };
}

test('a key that was revoked is not to be registered again: a new one is', async (t) => {
  const { about, file, run } = await withKey(t, 'revoked');
  const advice = `\`ssh-keygen -t ed25519 -f ${file}_2\`, and then \`andromeda keys add ${file}_2.pub\``;
  const [finding] = await about('key');
  assert.deepEqual([finding?.verdict, finding?.fix], ['wrong', advice]);
  const { stdout } = await run(['doctor']);
  assert.ok(stdout.includes(`Do this first: ${advice}\n`), stdout);
  // One that lies here and was never registered can be.
  await writeFile(`${file}_2`, '', { mode: 0o600 });
  await writeFile(`${file}_2.pub`, keygen('-t', 'ed25519').publicKey);
  assert.equal((await about('key'))[0]?.fix, `\`andromeda keys add ${file}_2.pub\``);
});

test('a registered key whose private file is missing is to be brought, or replaced', async (t) => {
  const { about, file } = await withKey(t, 'active');
  assert.equal((await about('key'))[0]?.verdict, 'ok');
  await rm(file);
  const [finding] = await about('key');
  assert.equal(finding?.verdict, 'wrong');
  assert.equal(
    finding?.text,
    `${file}.pub is registered, but its private key ${file} is not here, and no agent runs.`,
  );
  assert.match(finding?.fix ?? '', /^Bring that file back, .*ssh-add .* new one: `ssh-keygen .*_2\.pub`$/);
});

test('a private key with a passphrase is not wrong', async (t) => {
  const { about, file } = await withKey(t, 'active');
  execFileSync('ssh-keygen', ['-q', '-p', '-P', '', '-N', 'secret words', '-f', file]);
  const [locked] = await about('key');
  assert.equal(locked?.verdict, 'warn');
  assert.match(locked?.text ?? '', /ssh asks for its passphrase each time/);
});

test('a session file that others can read is warned of', async (t) => {
  const { about, directory } = await withKey(t, 'active');
  assert.deepEqual(
    (await about('sign-in')).map(({ verdict }) => verdict),
    ['ok'],
  );
  const file = join(directory, 'default.json');
  await chmod(file, 0o644);
  const [, warned] = await about('sign-in');
  assert.deepEqual([warned?.verdict, warned?.fix], ['warn', `\`chmod 600 ${file}\``]);
  assert.match(warned?.text ?? '', /has the mode 0644, and should have 0600\.$/);
});

test('a port that speaks plain HTTP is asked for by its address, not by its certificate', async (t) => {
  const { run } = await createMachine(t);
  const { url } = await startEnvironment(t);
  const { stdout } = await run(['doctor', '--url', url.replace('http:', 'https:')]);
  assert.match(stdout, /^wrong {2}tls .*does not speak TLS/);
  assert.match(stdout, /\nDo this first: Does its address begin with http:\/\/ and not https:\/\//);
});

/** What is so of SSH to alpha. */
const lacking = (reason: 'no_keys' | 'fault' | 'no_permission', message: string) => {
  const isFault = reason === 'fault';
  const [state, next] = isFault ? (['failed', 'operator'] as const) : (['missing', 'you'] as const);
  return uses({ ssh: { state, reason, granted: reason !== 'no_permission', next, message } });
};

test('known_hosts that is a directory and a login that fails are said, and a fix never repeats what is so', async (t) => {
  let now = lacking('no_keys', 'You have no SSH key registered.');
  const { about, directory } = await withKey(t, 'active', {
    'GET /me/access': () => now,
    [accessRoute]: { ...access, hostname: '127.0.0.1', port: 1 },
  });
  const login = async () => (await about('ssh')).at(-1);
  assert.match(
    (await login())?.text ?? '',
    /^A login to alpha fails: .*127\.0\.0\.1 port 1: Connection refused/,
  );
  const file = join(directory, 'known_hosts');
  await rm(file);
  await mkdir(file);
  assert.match((await login())?.text ?? '', new RegExp(`^The host key could not be written to ${file}`));
  const said = async () => (await about('access')).find(({ verdict }) => verdict === 'wrong');
  const keyless = await said();
  assert.deepEqual([keyless?.text, keyless?.fix], ['alpha: You have no SSH key registered.', undefined]);
  now = lacking('fault', 'alpha is broken.');
  const broken = await said();
  assert.deepEqual([broken?.text, broken?.fix], ['alpha is broken.', undefined]);
});

test('who uses kubectl alone is asked for no key, and a cluster without access is wrong only where it was named', async (t) => {
  const none = 'You have no SSH access to alpha: it takes the permission clusters.ssh.';
  const { run } = await withKey(t, 'revoked', {
    'GET /me/access': lacking('no_permission', none),
  });
  const all = await run(['doctor']);
  assert.equal(all.status, 0, all.stdout);
  assert.doesNotMatch(all.stdout, /^\w+ +(key|ssh) /m);
  assert.match(all.stdout, /^ok +access +gamma: It works\.$/m);
  assert.ok(all.stdout.includes(`alpha: ${none}\n`), all.stdout);
  const one = await run(['doctor', 'alpha']);
  assert.equal(one.status, 1);
  assert.match(one.stdout, /Do this first: `andromeda access request clusters\.ssh`/);
  const other = await run(['doctor', 'delta', '--quiet']);
  assert.match(other.stdout, /There is no cluster 'delta'; there are: alpha, gamma\./);
});
