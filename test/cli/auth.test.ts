import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { parseEnvironment } from '../../src/cli/net/discovery.ts';
import type { Session } from '../../src/cli/session/local-state.ts';
import { becomes } from '../support/app.ts';
import { createMachine, type Result, says, sessionAt } from './harness.ts';
import { type EnvironmentState, startEnvironment } from './issuer.ts';

const form = (body: Buffer) => Object.fromEntries(new URLSearchParams(body.toString('utf8')));

test('login prints the URL and the code, waits, obeys slow_down, and says who is signed in', async (t) => {
  const { run, directory, readProfile } = await createMachine(t);
  const { url, requests } = await startEnvironment(t, {
    polls: ['authorization_pending', 'hang up', 'slow_down', 'ok'],
  });
  const started = Date.now();
  const { status, stdout, stderr } = await run(['auth', 'login', '--url', `${url}/`]);
  assert.equal(
    stdout,
    `To sign in to ${url}, open

    ${url}/device?user_code=BDWP-HQPK

or open ${url}/device and enter the code

    BDWP-HQPK

Signed in as Ada <ada@physics.example>
`,
  );
  assert.deepEqual([status, stderr], [0, '']);
  // 0.1 s, 0.1 s, twice that after the lost connection, 5 s more after slow_down (RFC 8628 §3.5).
  assert.ok(Date.now() - started >= 5_600);

  const asked = requests.find(({ url }) => url === '/device_authorization');
  assert.deepEqual(form(asked?.body ?? Buffer.alloc(0)), {
    client_id: 'andromeda-cli',
    scope: 'openid profile email offline_access urn:zitadel:iam:org:project:id:andromeda:aud',
    resource: url,
  });
  const { platformUrl, sessions } = await readProfile();
  assert.equal(platformUrl, url);
  const session = sessions[url];
  assert.equal(session?.businessUrl, url);
  assert.match(session?.accessToken ?? '', /^secret-access-/);
  assert.match(session?.refreshToken ?? '', /^secret-refresh-/);
  assert.ok(Math.abs(Date.parse(session?.expiresAt ?? '') - Date.now() - 3600_000) < 10_000);
  assert.equal((await stat(directory)).mode & 0o777, 0o700);
  assert.deepEqual(await readdir(directory), ['default.json']);
  assert.equal((await stat(join(directory, 'default.json'))).mode & 0o777, 0o600);
});

test('the whole way: login, status, call, logout, and no token is ever printed', async (t) => {
  const { run } = await createMachine(t);
  const { url, state, requests } = await startEnvironment(t, {
    discovery: { svc_scopes: ['openid', 'offline_access'] },
  });
  const results: Result[] = [];
  const step = async (...args: string[]) => {
    const result = await run(args);
    results.push(result);
    return [result.status, result.stdout, result.stderr];
  };
  await step('auth', 'login', '--url', url, '--profile', 'lab');
  assert.equal(
    form(requests.find((one) => one.url === '/device_authorization')?.body ?? Buffer.alloc(0)).scope,
    'openid offline_access',
  );

  const [status, stdout] = await step('auth', 'status', '--profile', 'lab');
  assert.equal(status, 0);
  assert.match(
    String(stdout),
    new RegExp(`^Signed in as Ada <ada@physics.example>
Environment   ${url}
Profile       lab
Access token  valid until \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z, refreshed when needed
$`),
  );
  assert.deepEqual(await step('call', '--profile', 'lab', 'business', 'GET', '/me'), [
    0,
    '{"user":{"display_name":"Ada","primary_email":"ada@physics.example"}}',
    '',
  ]);
  const [live] = state.refreshTokens;
  assert.deepEqual(await step('auth', 'logout', '--profile', 'lab'), [0, `Signed out of ${url}\n`, '']);
  assert.deepEqual(state.revoked, [`refresh_token ${live}`]);
  assert.deepEqual(await step('auth', 'status', '--profile', 'lab'), [
    1,
    '',
    `You are not signed in to ${url}; run \`andromeda auth login --profile lab\`.\n`,
  ]);
  assert.deepEqual(await step('auth', 'logout', '--profile', 'lab'), [
    0,
    `Not signed in to ${url}; nothing to do.\n`,
    '',
  ]);
  for (const { stdout, stderr } of results) assert.ok(!/secret/.test(stdout + stderr));
});

test('status -o json and yaml say who, where and until when, and nothing secret', async (t) => {
  const { run, writeProfile } = await createMachine(t);
  const url = 'https://platform.example';
  const expiresAt = '2099-01-01T00:00:00.000Z';
  await writeProfile([sessionAt(url, { expiresAt })]);
  const json = await run(['auth', 'status', '-o', 'json']);
  assert.deepEqual([json.status, json.stderr], [0, '']);
  assert.deepEqual(JSON.parse(json.stdout), {
    user: { name: 'Ada', email: 'ada@physics.example' },
    profile: 'default',
    platformUrl: url,
    businessUrl: url,
    issuer: url,
    expiresAt,
    refreshable: true,
  });
  const yaml = await run(['auth', 'status', '-o', 'yaml']);
  assert.equal(
    yaml.stdout,
    `user:
  name: Ada
  email: ada@physics.example
profile: default
platformUrl: ${url}
businessUrl: ${url}
issuer: ${url}
expiresAt: ${expiresAt}
refreshable: true
`,
  );
});

test('login at a terminal offers a browser, opens the address on Enter, and shows that it waits', async (t) => {
  const { directory, readProfile, atTerminal } = await createMachine(t);
  const { url, state } = await startEnvironment(t, { polls: ['authorization_pending'] });
  const home = dirname(directory);
  const opened = join(home, 'opened');
  const browser = join(home, 'browser');
  await writeFile(browser, `#!/bin/sh\necho "$@" > ${opened}.new && mv ${opened}.new ${opened}\n`, {
    mode: 0o755,
  });
  const login = atTerminal(['auth', 'login', '--url', url], { BROWSER: browser });
  await login.until('Press Enter to open it in a browser on this machine.');
  await login.until('Waiting for you to sign in …');
  login.type('\r');
  await becomes(() => existsSync(opened), true);
  assert.equal(await readFile(opened, 'utf8'), `${url}/device?user_code=BDWP-HQPK\n`);
  state.polls = ['ok'];
  const { status, screen } = await login.result;
  assert.equal(status, 0, screen);
  assert.match(screen, /Signed in as Ada <ada@physics\.example>\n$/);
  assert.ok((await readProfile()).sessions[url]);
});

test('no browser is offered where there is none', async (t) => {
  const { atTerminal } = await createMachine(t);
  const { url } = await startEnvironment(t, { polls: ['authorization_pending', 'ok'] });
  const { status, screen } = await atTerminal(['auth', 'login', '--url', url]).result;
  assert.equal(status, 0, screen);
  assert.doesNotMatch(screen, /browser/);
});

test('denial and expiry are plain sentences, and nothing is stored', async (t) => {
  const { run, directory } = await createMachine(t);
  const { url, state } = await startEnvironment(t);
  const expired = 'The code has expired before anyone used it; run `andromeda auth login` again.\n';
  for (const [answer, sentence, expiresIn] of [
    ['access_denied', 'Sign-in was denied.\n', 600],
    ['expired_token', expired, 600],
    ['authorization_pending', expired, 1],
    ['unauthorized_client', `${url} refused: unauthorized_client.\n`, 600],
  ] as const) {
    state.polls = [answer];
    state.expiresIn = expiresIn;
    await says(run(['auth', 'login', '--url', url]), 1, sentence);
  }
  await assert.rejects(stat(join(directory, 'default.json')));
});

test('a second sign-in revokes the refresh token that it replaces, unless both are of one session at the issuer', async (t) => {
  const { run, readProfile } = await createMachine(t);
  const { url, state } = await startEnvironment(t);
  const login = async () => {
    assert.equal((await run(['auth', 'login', '--url', url])).status, 0);
    return `refresh_token ${(await readProfile()).sessions[url]?.refreshToken}`;
  };
  const first = await login();
  assert.equal(state.revoked.length, 0);
  await login();
  assert.deepEqual(state.revoked, [first]);
  // As at Keycloak, where the second is a token of the same session of the browser.
  state.sid = 'one';
  const third = await login();
  const fourth = await login();
  state.sid = 'two';
  await login();
  assert.equal(state.revoked.includes(third), false);
  assert.equal(state.revoked.at(-1), fourth);
  state.revocation = 'fails';
  assert.equal((await run(['auth', 'login', '--url', url])).stderr, '');
});

test('clocks that are a minute apart sign people in', async (t) => {
  const { run } = await createMachine(t);
  const { url, state } = await startEnvironment(t);
  // Its ID tokens are good for 30 s.
  for (const skew of [58, -85]) {
    state.skew = skew;
    const { status, stderr } = await run(['auth', 'login', '--url', url]);
    assert.deepEqual([status, stderr], [0, ''], `${skew} s`);
  }
});

test('an ID token that is refused is one plain sentence, and the tokens that came with it are revoked', async (t) => {
  const { run } = await createMachine(t);
  const { url, state } = await startEnvironment(t);
  const clocks = /^The clocks of this machine and of the issuer are (\d+) seconds apart\.\n$/;
  const cases: [Partial<EnvironmentState>, RegExp, number?][] = [
    [{ skew: 300 }, clocks, 300],
    [{ skew: -700 }, clocks, 700],
    [{ idClaims: { iss: `${url}/` } }, RegExp(`^The issuer calls itself ${url}/; expected was ${url}\\.\n$`)],
    [
      { idClaims: { aud: 'other' } },
      /^The ID token of the issuer is for other; expected was andromeda-cli\.\n$/,
    ],
    [
      { idClaims: { aud: ['andromeda-cli', 'other'] } },
      /^The ID token of the issuer is for andromeda-cli, other; which of them asked is not said: .* add azp\.\n$/,
    ],
    [
      { idClaims: { aud: ['andromeda-cli', 'other'], azp: 'other' } },
      /^The ID token of the issuer is for other; expected was andromeda-cli\.\n$/,
    ],
    [
      { metadata: { issuer: `${url}/x` } },
      RegExp(`^The issuer calls itself ${url}/x; expected was ${url}/\\.\n$`),
    ],
  ];
  for (const [changes, sentence, apart] of cases) {
    Object.assign(state, { skew: 0, idClaims: {}, revoked: [] }, changes);
    state.refreshTokens.clear();
    const { status, stderr } = await run(['auth', 'login', '--url', url]);
    assert.equal(status, 1);
    const [, seconds] = sentence.exec(stderr) ?? assert.fail(stderr);
    if (apart !== undefined) assert.ok(Math.abs(Number(seconds) - apart) < 60, seconds);
    const [token] = state.refreshTokens;
    await becomes(() => state.revoked.join(), token === undefined ? '' : `refresh_token ${token}`);
  }
});

test('an issuer that does not answer a revocation holds up no refusal', async (t) => {
  const { run } = await createMachine(t);
  const me = { status: 401, body: { code: 'unauthorized', message: 'No account.', retryable: false } };
  for (const changes of [{ skew: 300 }, { me }]) {
    const { url, state } = await startEnvironment(t, { revocation: 'hangs', ...changes });
    const { status } = await run(['auth', 'login', '--url', url]);
    assert.deepEqual([status, state.revoked], [1, []]);
    await becomes(() => state.revoked.join(), 'given up');
  }
});

test('Ctrl-C during the wait ends the sign-in with status 130', async (t) => {
  const { start } = await createMachine(t);
  const { url } = await startEnvironment(t, { polls: ['authorization_pending'], interval: 60 });
  const login = start(['auth', 'login', '--url', url]);
  await login.until('    BDWP-HQPK\n');
  login.signal('SIGINT');
  await says(login.result, 130, 'Sign-in was cancelled.\n');
});

test('where a session cannot be kept, no browser is opened first', async (t) => {
  const { run } = await createMachine(t);
  const { url, requests } = await startEnvironment(t);
  const env = { XDG_STATE_HOME: '/dev/null/state' };
  const { status, stdout, stderr } = await run(['auth', 'login', '--url', url], { env });
  assert.deepEqual([status, stdout, requests.length], [1, '', 0]);
  assert.match(stderr, /^The session cannot be kept in \/dev\/null\/state\/andromeda: ENOTDIR: .*\.\n$/);
});

test('a person whom the service does not know gets a sentence and no session', async (t) => {
  const { run, directory } = await createMachine(t);
  const me = {
    status: 401,
    body: { code: 'unauthorized', message: 'No account for this identity.', retryable: false },
  };
  const { url, state } = await startEnvironment(t, { me });
  const sentence = `The issuer signed you in, but ${url} refused you: 401 No account for this identity.\n`;
  await says(run(['auth', 'login', '--url', url]), 1, sentence);
  await assert.rejects(stat(join(directory, 'default.json')));
  await becomes(() => state.revoked.join(), `refresh_token ${[...state.refreshTokens][0]}`);
});

test('a Business API in trouble does not cost the sign-in', async (t) => {
  const { run, readProfile } = await createMachine(t);
  const { url } = await startEnvironment(t, { me: { status: 503, body: { message: 'Try later.' } } });
  const { status, stderr } = await run(['auth', 'login', '--url', url]);
  assert.deepEqual([status, stderr], [0, `Who you are could not be read from ${url}: 503 Try later.\n`]);
  assert.ok((await readProfile()).sessions[url]);
});

test('a platform that names the issuer of another one gets no token where the issuer says whom it serves', async (t) => {
  const { run, readProfile } = await createMachine(t);
  const real = await startEnvironment(t);
  const evil = await startEnvironment(t, { discovery: { authorization_servers: [real.url] } });
  const login = () => run(['auth', 'login', '--url', evil.url]);
  const refusal = `${evil.url} names ${real.url} for signing in, which does not serve that address; ask the person who gave it to you.`;
  const introduction = `You have not signed in to ${evil.url} before. Its people sign in at ${real.url}.`;

  for (const listed of [[real.url], [], 'all', [`${evil.url}/deeper`]]) {
    real.state.metadata = { protected_resources: listed };
    await says(login(), 1, `${introduction}\n${refusal}\n`, '');
  }
  assert.ok(!real.requests.some(({ url }) => url === '/device_authorization'));

  // An issuer that lists nothing may still know what its tokens are for.
  real.state.metadata = {};
  real.state.resources = [real.url];
  assert.equal((await login()).stderr, `${introduction}\n${refusal}\n`);
  await assert.rejects(readProfile(), { code: 'ENOENT' });
  assert.deepEqual(
    evil.requests.map(({ url }) => url).filter((url) => !url.startsWith('/.well-known/')),
    [],
  );

  real.state.metadata = { protected_resources: [`${real.url}/`] };
  real.state.resources = [`${real.url}/`];
  assert.equal((await run(['auth', 'login', '--url', real.url])).status, 0);
});

for (const [what, resources] of [
  ['tokens are asked for one platform', undefined],
  ['an issuer that refuses requests with a resource is asked without', 'AADSTS901002'],
  ['an issuer that refuses them in another way is asked without', 'AADSTS9010010'],
] as const)
  test(`${what}, at sign-in and at every refresh`, async (t) => {
    const { run, readProfile, writeProfile } = await createMachine(t);
    const { url, requests, state } = await startEnvironment(t, { resources });
    assert.equal((await run(['auth', 'login', '--url', url])).status, 0);
    const { [url]: session } = (await readProfile()).sessions;
    assert.equal(session?.resource, resources ? undefined : url);
    await writeProfile([{ ...session, expiresAt: new Date(0).toISOString() } as Session]);
    assert.equal((await run(['call', 'business', 'GET', '/me'])).status, 0);
    const asked = requests.filter(({ method }) => method === 'POST').map(({ body }) => form(body).resource);
    assert.deepEqual(asked, resources ? [url, undefined, undefined, undefined] : [url, url, url]);
    // One that says which resources it serves knows what it refuses.
    state.metadata = { protected_resources: [url] };
    assert.equal((await run(['auth', 'login', '--url', url])).status, resources ? 1 : 0);
  });

test('a damaged session file is kept aside before anyone is sent to a browser', async (t) => {
  const { run, start, directory, readProfile } = await createMachine(t);
  const { url, requests } = await startEnvironment(t);
  await mkdir(directory);
  const path = join(directory, 'default.json');
  for (const text of ['{', '', '{"sessions":{"x":{}}}']) {
    await writeFile(path, text);
    const login = start(['auth', 'login', '--url', url]);
    await login.until('and enter the code');
    const { status, stderr } = await login.result;
    const [, aside = ''] = /is damaged; it is kept as (\S+)\.\n$/.exec(stderr) ?? [];
    assert.ok(status === 0 && aside.startsWith(`${path}.damaged-`), stderr);
    assert.equal(await readFile(aside, 'utf8'), text);
    assert.ok((await readProfile()).sessions[url]);
  }
  // Without an address there is nothing to sign in to: it was in that file.
  await writeFile(path, '{');
  requests.length = 0;
  const { status, stderr } = await run(['auth', 'login']);
  assert.equal(status, 1);
  assert.match(stderr, /is damaged; sign in again with `andromeda auth login --url <platform_url>`/);
  assert.deepEqual([await readFile(path, 'utf8'), requests.length], ['{', 0]);
});

test('login --url binds the profile; ANDROMEDA_URL does not bind it anew', async (t) => {
  const { run, readProfile } = await createMachine(t);
  const one = await startEnvironment(t);
  const two = await startEnvironment(t);
  assert.deepEqual(
    [(await run(['auth', 'login'])).stderr],
    ['Say where to sign in: `andromeda auth login --url <platform_url>`.\n'],
  );
  await run(['auth', 'login', '--url', one.url]);
  await run(['auth', 'login'], { env: { ANDROMEDA_URL: two.url } });
  const { platformUrl, sessions } = await readProfile();
  assert.equal(platformUrl, one.url);
  assert.deepEqual(Object.keys(sessions), [one.url, two.url]);
});

test('logout deletes the session also when the issuer does not revoke it, and says so', async (t) => {
  const { run, writeProfile, readProfile } = await createMachine(t);
  const { url, state } = await startEnvironment(t);
  const prefix = 'The session was deleted here, but could not be revoked at the issuer: ';
  for (const [revocation, reason] of [
    ['fails', `${url} answered 503; try again later.`],
    ['absent', `${url} offers no way to revoke it.`],
  ] as const) {
    state.revocation = revocation;
    await writeProfile([sessionAt(url)]);
    await says(run(['auth', 'logout']), 0, `${prefix}${reason}\n`, `Signed out of ${url}\n`);
    assert.deepEqual(await readProfile(), { platformUrl: url, sessions: {} });
  }
});

test('a discovery document that cannot be trusted is refused with its fault', async (t) => {
  const { run } = await createMachine(t);
  const { url, state, requests } = await startEnvironment(t);
  state.discovery = { resource: 'https://elsewhere.example' };
  const sentence = `${url}/.well-known/oauth-protected-resource cannot be used: \`resource\` is not the URL that was asked for.\n`;
  await says(run(['auth', 'login', '--url', url]), 1, sentence, '');
  assert.equal(requests.length, 1);

  const answered = `${url}/base/.well-known/oauth-protected-resource answered 404; is this the platform URL?\n`;
  await says(run(['auth', 'login', '--url', `${url}/base`]), 1, answered);
});

test('every field of discovery is checked', () => {
  const url = 'https://platform.example';
  const good = {
    resource: `${url}/`,
    authorization_servers: ['https://login.example/realms/lab'],
    svc_audiences: ['one', 'two'],
    svc_business_url: 'https://business.example/',
    svc_cli_client_id: 'cli',
  };
  assert.deepEqual(parseEnvironment(url, good), {
    platformUrl: url,
    businessUrl: 'https://business.example',
    issuer: 'https://login.example/realms/lab',
    clientId: 'cli',
    scope:
      'openid profile email offline_access urn:zitadel:iam:org:project:id:one:aud urn:zitadel:iam:org:project:id:two:aud',
  });
  const rows: [Record<string, unknown>, string][] = [
    [{ resource: undefined }, '`resource` is not the URL that was asked for'],
    [{ resource: `${url}/other` }, '`resource` is not the URL that was asked for'],
    [{ authorization_servers: [] }, '`authorization_servers` names no issuer at an https address'],
    [
      { authorization_servers: ['http://issuer.example'] },
      '`authorization_servers` names no issuer at an https address',
    ],
    [{ svc_business_url: 'http://business.example' }, '`svc_business_url` is not an https address'],
    [{ svc_business_url: 'https://business.example/?a' }, '`svc_business_url` is not an https address'],
    [{ svc_audiences: 'andromeda' }, '`svc_audiences` is not a list of audiences'],
    [{ svc_cli_client_id: 7 }, '`svc_cli_client_id` is missing'],
    [{ bearer_methods_supported: ['body'] }, '`bearer_methods_supported` leaves out `header`'],
    [{ svc_scopes: 'openid' }, '`svc_scopes` is not a list of scopes'],
  ];
  for (const [change, fault] of rows) assert.equal(parseEnvironment(url, { ...good, ...change }), fault);
});
