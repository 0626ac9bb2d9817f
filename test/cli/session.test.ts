import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { test } from 'node:test';
import { stateDirectory } from '../../src/cli/session/local-state.ts';
import { exclusively } from '../../src/cli/session/lock.ts';
import { becomes } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { limit } from '../support/limit.ts';
import { createMachine, says, sessionAt } from './harness.ts';
import { startEnvironment } from './issuer.ts';

const past = new Date(Date.now() - 60_000).toISOString();
const ended = 'Your session has ended; sign in again with `andromeda auth login`.\n';
const me = ['call', 'business', 'GET', '/me'];

test('an expired session is refreshed once, also by several commands at once', async (t) => {
  const { run, directory, writeProfile, readProfile } = await createMachine(t);
  const { url, state, requests } = await startEnvironment(t, {
    refreshTokens: new Set(['secret-refresh']),
    refreshDelayMs: 500,
  });
  await writeProfile([sessionAt(url, { expiresAt: past })]);
  const results = await Promise.all([run(me), run(me), run(me)]);
  assert.deepEqual(
    results.map(({ status, stderr }) => [status, stderr]),
    [
      [0, ''],
      [0, ''],
      [0, ''],
    ],
  );
  assert.deepEqual([state.refreshes, state.reused], [1, 0]);

  const session = (await readProfile()).sessions[url];
  assert.deepEqual([...state.refreshTokens], [session?.refreshToken]);
  const used = requests.filter((one) => one.url === '/me').map(({ headers }) => headers.authorization);
  assert.deepEqual(used, Array(3).fill(`Bearer ${session?.accessToken}`));
  assert.deepEqual(await readdir(directory), ['default.json']);
  assert.equal((await stat(join(directory, 'default.json'))).mode & 0o777, 0o600);
});

test('a token that is refused is refreshed once, by `call` and by commands', async (t) => {
  const { run, writeProfile } = await createMachine(t);
  const refreshTokens = new Set(['secret-refresh']);
  const { url, state, requests } = await startEnvironment(t, { refreshTokens });
  state.refused.add('Bearer secret-access');
  for (const args of [me, ['members', 'list']]) {
    refreshTokens.add('secret-refresh');
    await writeProfile([sessionAt(url)]);
    requests.length = 0;
    const { stderr } = await run(args);
    assert.doesNotMatch(stderr, /Not valid/, args.join(' '));
    const asked = requests.filter((one) => one.url === '/me');
    assert.equal(asked.length, 2);
    assert.notEqual(asked[1]?.headers.authorization, asked[0]?.headers.authorization);
  }
  assert.equal(state.refreshes, 2);

  // Where no other token helps, the refusal is what is said.
  await writeProfile([sessionAt(url)]);
  const { status, stderr } = await run(me);
  assert.deepEqual([status, state.refreshes], [1, 2]);
  assert.match(stderr, /401 .*Not valid/);
});

test('a token with less than 30 seconds left is refreshed, one with more is not', async (t) => {
  const { run, writeProfile } = await createMachine(t);
  const { url, state } = await startEnvironment(t, { refreshTokens: new Set(['secret-refresh']) });
  await writeProfile([sessionAt(url, { expiresAt: new Date(Date.now() + 60_000).toISOString() })]);
  await run(me);
  assert.equal(state.refreshes, 0);
  await writeProfile([sessionAt(url, { expiresAt: new Date(Date.now() + 20_000).toISOString() })]);
  await run(me);
  assert.equal(state.refreshes, 1);
});

test('a session that the issuer will not refresh has ended, for every command after it too', async (t) => {
  const { run, writeProfile } = await createMachine(t);
  const { url, state, requests } = await startEnvironment(t);
  await writeProfile([sessionAt(url, { expiresAt: past })]);
  for (const args of [me, me, ['auth', 'status']]) {
    await says(run(args), 1, ended, '');
  }
  assert.equal(state.reused, 1);
  assert.ok(!requests.some((one) => one.url === '/me'));
});

test('a session that has ended names the command that renews it, with its profile and address', async (t) => {
  const { run, writeProfile } = await createMachine(t);
  const { url } = await startEnvironment(t);
  await writeProfile([sessionAt(url, { expiresAt: past })], 'lab');
  const again = (flags: string) =>
    `Your session has ended; sign in again with \`andromeda auth login ${flags}\`.\n`;
  for (const flags of [
    ['--profile', 'lab'],
    ['--profile', 'lab', '--url', url],
  ]) {
    const called = await run(['call', ...flags, 'business', 'GET', '/me']);
    assert.equal(called.stderr, again(flags.join(' ')));
    assert.equal((await run(['auth', 'status', ...flags])).stderr, again(flags.join(' ')));
  }
});

test('an issuer in trouble does not end the session', async (t) => {
  const { run, writeProfile, readProfile } = await createMachine(t);
  const { url, state, server } = await startEnvironment(t, { refreshTokens: new Set(['secret-refresh']) });
  await writeProfile([sessionAt(url, { expiresAt: past })]);
  state.refusal = { status: 503, error: 'temporarily_unavailable' };
  await says(run(me), 1, `${url} answered 503; try again later.\n`);
  state.refusal = undefined;
  assert.equal((await run(me)).status, 0);

  await writeProfile([sessionAt(url, { expiresAt: past })]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await says(run(me), 1, `Could not reach ${url}: the connection was refused.\n`);
  assert.equal((await readProfile()).sessions[url]?.refreshToken, 'secret-refresh');
});

test('a refresh whose answer was lost is asked for again at once', async (t) => {
  const { run, writeProfile } = await createMachine(t);
  const { url, state } = await startEnvironment(t, {
    refreshTokens: new Set(['secret-refresh']),
    lostAnswers: 2,
  });
  await writeProfile([sessionAt(url, { expiresAt: past })]);
  await says(run(me), 0, '');
  assert.deepEqual([state.lostAnswers, state.refreshes], [0, 1]);
});

test('what came with an ID token that is refused at a refresh is revoked', async (t) => {
  const { run, writeProfile } = await createMachine(t);
  const { url, state } = await startEnvironment(t, { refreshTokens: new Set(['secret-refresh']) });
  Object.assign(state, { idClaims: { aud: 'other' } });
  await writeProfile([sessionAt(url, { expiresAt: past })]);
  await says(run(me), 1, 'The ID token of the issuer is for other; expected was andromeda-cli.\n');
  const [given] = state.refreshTokens;
  await becomes(() => state.revoked.join(), `refresh_token ${given}`);
});

test('a lock that a killed or hung command left behind does not stand in the way', async (t) => {
  const { run, directory, writeProfile } = await createMachine(t);
  const { url, state } = await startEnvironment(t);
  const ghost = spawn('true');
  await new Promise((resolve) => ghost.on('close', resolve));
  const lock = join(directory, 'default.lock');
  const leave = async (pid: number, host: string) => {
    state.refreshTokens.add('secret-refresh');
    await writeProfile([sessionAt(url, { expiresAt: past })]);
    await writeFile(lock, JSON.stringify({ pid, host, nonce: 'x' }));
  };
  await leave(ghost.pid ?? 0, hostname());
  assert.equal((await run(me)).status, 0);

  await leave(process.pid, 'another-machine');
  await utimes(lock, new Date(), new Date(Date.now() - 31_000));
  assert.equal((await run(me)).status, 0);
  assert.equal(state.refreshes, 2);
  assert.deepEqual(await readdir(directory), ['default.json']);
});

test('a lock stays young for as long as it is held, however long that is', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  using directory = temporaryDirectory();
  const lock = join(directory.path, 'lock');
  await exclusively(lock, async () => {
    await utimes(lock, new Date(0), new Date(0));
    t.mock.timers.tick(10_000);
    await becomes(async () => Date.now() - (await stat(lock)).mtimeMs < 30_000, true);
  });
});

test('a damaged session file is named, and no token goes anywhere', async (t) => {
  const { run, directory, writeProfile } = await createMachine(t);
  const { url, requests } = await startEnvironment(t);
  await writeProfile([sessionAt(url)]);
  const path = join(directory, 'default.json');
  const sentence = `${path} is damaged; sign in again with \`andromeda auth login --url <platform_url>\`, which keeps it aside.\n`;
  const swapped = { sessions: { [url]: sessionAt('https://elsewhere.example') } };
  for (const text of ['{', '[]', '{"sessions":{"x":{}}}', JSON.stringify(swapped)]) {
    await writeFile(path, text);
    await says(run(['call', '--url', url, 'business', 'GET', '/me']), 1, sentence);
  }
  assert.equal(requests.length, 0);
});

test('logout puts a damaged session file aside and says so, and then there is nothing to sign out of', async (t) => {
  const { run, directory, writeProfile } = await createMachine(t);
  const { url } = await startEnvironment(t);
  await writeProfile([sessionAt(url)]);
  const path = join(directory, 'default.json');
  await writeFile(path, '{');
  const { status, stdout, stderr } = await run(['auth', 'logout', '--url', url]);
  assert.match(stderr, /was damaged, and is kept as \S+default\.json\.damaged-\S+;/);
  assert.deepEqual([status, stdout], [0, `Not signed in to ${url}; nothing to do.\n`]);
});

test('the session is never kept where the command happens to be given', (t) => {
  const home = process.env['HOME'];
  t.after(() => {
    if (home === undefined) delete process.env['HOME'];
    else process.env['HOME'] = home;
  });
  for (const value of ['', 'relative', '/home/ada']) {
    process.env['HOME'] = value;
    for (const base of [undefined, '', 'state']) {
      const directory = stateDirectory(base === undefined ? {} : { XDG_STATE_HOME: base });
      assert.ok(isAbsolute(directory), `${value} ${base}: ${directory}`);
    }
  }
  assert.equal(stateDirectory({}), '/home/ada/.local/state/andromeda');
});

test('an account that the machine does not know, and that has no HOME, gets a sentence where it matters', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, (t) => {
  const program = join(import.meta.dirname, '../../scripts/andromeda');
  const unknown = { uid: 54321, gid: 54321, encoding: 'utf8', timeout: limit(60_000) } as const;
  if (spawnSync('test', ['-x', program], unknown).status !== 0)
    return t.skip('the checkout is out of reach of other users');
  const run = (...args: string[]) =>
    spawnSync(program, args, { ...unknown, cwd: '/', env: { PATH: process.env['PATH'] } });
  assert.deepEqual([run('version').status, run('version').stderr], [0, '']);
  const { status, stdout, stderr } = run('auth', 'status');
  assert.deepEqual([status, stdout, stderr], [1, '', 'You have no home directory here; set HOME to one.\n']);
});
