import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createMachine as createOwnMachine, says, sessionAt } from './harness.ts';
import { startEnvironment } from './issuer.ts';
import { noKeyring, startKeyring } from './keyring.ts';

const skip = noKeyring;
const me = ['call', 'business', 'GET', '/me'];
const past = new Date(Date.now() - 60_000).toISOString();
const nowhere = { ANDROMEDA_CREDENTIAL_STORE: '', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere/bus' };
const noBus = 'The credential store cannot be used: there is none here.';

const fix = 'Your session is in it; `andromeda auth login` makes one that is not.';

/** A machine whose commands are processes: the credential store is found by the environment of one. */
async function createMachine(t: TestContext) {
  const machine = await createOwnMachine(t);
  const run = (args: string[], { env }: { env?: Record<string, string> } = {}) =>
    machine.runProcess(args, env);
  return { ...machine, run };
}

/** A machine whose session is in the credential store of `env`, put there by a sign-in. */
async function signedIn(t: TestContext, env: Record<string, string>) {
  const machine = await createMachine(t);
  const environment = await startEnvironment(t);
  await says(machine.run(['auth', 'login', '--url', environment.url], { env }), 0, '');
  return { ...machine, ...environment };
}

test('the session lives in the operating system’s credential store, and no token in a file', {
  skip,
}, async (t) => {
  const keyring = await startKeyring(t);
  const { run, url, directory, state } = await signedIn(t, keyring.env);
  const account = `default ${url}`;
  const stored = JSON.parse(keyring.secrets()[account] ?? '');
  assert.deepEqual([...state.refreshTokens], [stored.refreshToken]);
  for (const name of await readdir(directory))
    assert.doesNotMatch(await readFile(join(directory, name), 'utf8'), /secret/);
  const { env } = keyring;

  // Those of other profiles and environments lie next to it.
  const other = await startEnvironment(t);
  const login = await run(['auth', 'login', '--url', other.url, '--profile', 'work'], { env });
  assert.equal(login.status, 0, login.stderr);
  const accounts = () => Object.keys(keyring.secrets()).sort();
  assert.deepEqual(accounts(), [account, `work ${other.url}`]);

  const status = await run(['auth', 'status'], { env });
  assert.match(status.stdout, /^Signed in as Ada <ada@physics\.example>\n/);
  assert.equal((await run(me, { env })).status, 0);
  await says(run(['auth', 'logout'], { env }), 0, '', `Signed out of ${url}\n`);
  assert.deepEqual(state.revoked, [`refresh_token ${stored.refreshToken}`]);
  assert.deepEqual(accounts(), [`work ${other.url}`]);
});

test('an expired session in the credential store is refreshed once, also by several commands at once', {
  skip,
}, async (t) => {
  const keyring = await startKeyring(t);
  const machine = await createMachine(t);
  const { url, state } = await startEnvironment(t, { accessLifetime: 1, refreshDelayMs: 300 });
  const { env } = keyring;
  assert.equal((await machine.run(['auth', 'login', '--url', url], { env })).status, 0);
  state.accessLifetime = 3600;
  const results = await Promise.all([me, me, me].map((args) => machine.run(args, { env })));
  assert.deepEqual(
    results.map(({ status, stderr }) => [status, stderr]),
    Array(3).fill([0, '']),
  );
  assert.deepEqual([state.refreshes, state.reused], [1, 0]);
  assert.deepEqual(
    [...state.refreshTokens],
    [JSON.parse(keyring.secrets()[`default ${url}`] ?? '').refreshToken],
  );
});

test('where there is none, it is said once on stderr, and the session is in a file of mode 0600', async (t) => {
  const { run, directory, readProfile } = await createMachine(t);
  const { url } = await startEnvironment(t);
  const file = join(directory, 'default.json');
  const login = ['auth', 'login', '--url', url];
  const sentence = `${noBus} The session is kept in ${file}, which only you can read.\n`;
  await says(run(login, { env: nowhere }), 0, sentence);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.match((await readProfile()).sessions[url]?.accessToken ?? '', /^secret/);
  await says(run(me, { env: nowhere }), 0, '');
});

test('a session in a store that cannot be reached any more is replaced by signing in again', {
  skip,
}, async (t) => {
  const keyring = await startKeyring(t);
  const { run, url, directory, readProfile } = await signedIn(t, keyring.env);
  await says(run(me, { env: nowhere }), 1, `${noBus} ${fix}\n`);
  const sentence = `${noBus} The session is kept in ${join(directory, 'default.json')}, which only you can read.\n`;
  await says(run(['auth', 'login'], { env: nowhere }), 0, sentence);
  assert.ok((await readProfile()).sessions[url]);
  assert.equal((await run(me, { env: nowhere })).status, 0);
});

test('ANDROMEDA_CREDENTIAL_STORE=file keeps it in the file although there is a credential store', {
  skip,
}, async (t) => {
  const keyring = await startKeyring(t);
  const { run, readProfile } = await createMachine(t);
  const { url } = await startEnvironment(t);
  const env = { ...keyring.env, ANDROMEDA_CREDENTIAL_STORE: 'file' };
  const { status, stderr } = await run(['auth', 'login', '--url', url], { env });
  assert.deepEqual([status, stderr, keyring.secrets()], [0, '', {}]);
  assert.ok((await readProfile()).sessions[url]);
});

test('ANDROMEDA_CREDENTIAL_STORE=keyring keeps it nowhere else', async (t) => {
  const { run, directory, writeProfile } = await createMachine(t);
  const { url } = await startEnvironment(t);
  const env = { ...nowhere, ANDROMEDA_CREDENTIAL_STORE: 'keyring' };
  await says(run(['auth', 'login', '--url', url], { env }), 1, `${noBus}\n`);
  assert.deepEqual(await readdir(directory), []);
  if (noKeyring) return;

  const keyring = await startKeyring(t);
  await writeProfile([sessionAt(url, { expiresAt: past, refreshToken: 'good' })]);
  const moved = await startEnvironment(t, { refreshTokens: new Set(['good']) });
  await writeProfile([sessionAt(moved.url, { expiresAt: past, refreshToken: 'good' })]);
  await says(run(me, { env: { ...keyring.env, ANDROMEDA_CREDENTIAL_STORE: 'keyring' } }), 0, '');
  assert.deepEqual(Object.keys(keyring.secrets()), [`default ${moved.url}`]);
  assert.doesNotMatch(await readFile(join(directory, 'default.json'), 'utf8'), /secret/);
});

test('ANDROMEDA_CREDENTIAL_STORE has two values', async (t) => {
  const { run } = await createOwnMachine(t);
  const sentence = "ANDROMEDA_CREDENTIAL_STORE is 'vault'; it may be keyring or file.\n";
  await says(run(me, { env: { ANDROMEDA_CREDENTIAL_STORE: 'vault' } }), 2, sentence);
});

test('a credential store that does not answer holds up neither a sign-in nor a call', { skip }, async (t) => {
  const keyring = await startKeyring(t);
  const { run, url } = await signedIn(t, keyring.env);
  const socket = join((await createMachine(t)).directory, '..', 'bus');
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(socket, resolve));
  const open = new Set<import('node:net').Socket>();
  silent.on('connection', (one) => open.add(one));
  t.after(() => {
    for (const one of open) one.destroy();
    silent.close();
  });
  const env = { ANDROMEDA_CREDENTIAL_STORE: '', DBUS_SESSION_BUS_ADDRESS: `unix:path=${socket}` };
  const late = 'The credential store cannot be used: it did not answer within 4 seconds.';
  await says(run(me, { env }), 1, `${late} ${fix}\n`, '');

  const login = await run(['auth', 'login', '--url', url, '--profile', 'new'], { env });
  assert.equal(login.status, 0);
  assert.match(login.stdout, /Signed in as Ada <ada@physics\.example>\n$/);
  assert.ok(login.stderr.startsWith(`${late} The session is kept in `), login.stderr);
});

test('a locked credential store that cannot be unlocked is a sentence', { skip }, async (t) => {
  const keyring = await startKeyring(t, { locked: true });
  const { run } = await createMachine(t);
  const { url } = await startEnvironment(t);
  const env = { ...keyring.env, ANDROMEDA_CREDENTIAL_STORE: 'keyring' };
  const { status, stderr } = await run(['auth', 'login', '--url', url], { env });
  assert.equal(status, 1);
  assert.match(stderr, /^The credential store cannot be used: .*\.\n$/);
});
