/** Servers that redirect, hang, send 5 MB or send what is no JSON: one sentence, and no token goes astray. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { send } from '../../src/cli/net/request.ts';
import { createMachine, type Result, says, serve, sessionAt } from './harness.ts';
import { startEnvironment } from './issuer.ts';
import { signedIn } from './small-api.ts';

const size = 5_000_000;
type Answer = Parameters<typeof serve>[1];

const commands = {
  call: ['call', 'business', 'GET', '/me'],
  everyday: ['keys', 'list'],
  admin: ['admin', 'organization', 'list'],
  login: ['auth', 'login'],
};

/** What each command says of such a server, and the server's address. */
async function said(t: TestContext, answer: Answer, wait = async (ended: Promise<Result>) => ended) {
  const machine = await createMachine(t);
  const { url, requests } = await serve(t, answer);
  await machine.writeProfile([sessionAt(url)]);
  const results: Record<string, Result> = {};
  for (const [name, args] of Object.entries(commands)) results[name] = await wait(machine.run(args));
  const [call, everyday, admin, login] = Object.keys(commands).map((name) => {
    const { status, stdout, stderr } = results[name] as Result;
    return [status, stdout, stderr];
  });
  for (const { stdout, stderr } of Object.values(results)) assert.doesNotMatch(stdout + stderr, /secret/);
  return { call, everyday, admin, login, url, requests };
}

test('a server that redirects is refused, and nothing follows', async (t) => {
  const elsewhere = await serve(t, (_seen, response) => void response.end('{}'));
  const { call, everyday, admin, login, url, requests } = await said(t, (_seen, response) => {
    response.writeHead(307, { location: `${elsewhere.url}/me` }).end('moved');
  });
  assert.deepEqual(call, [1, '', 'business: 307 moved\n']);
  assert.deepEqual(everyday, [1, '', `${url} answered 307.\n`]);
  assert.deepEqual(admin, [1, '', `${url} answered 307.\n`]);
  const discovery = `${url}/.well-known/oauth-protected-resource`;
  assert.deepEqual(login, [1, '', `${discovery} answered 307; is this the platform URL?\n`]);
  assert.deepEqual([requests.length, elsewhere.requests.length], [5, 0]);
});

test('a server that hangs before it answers, or half-way, is left', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const impatient = async (ended: Promise<Result>) => {
    let isOver = false;
    const over = ended.finally(() => {
      isOver = true;
    });
    for (; !isOver; t.mock.timers.tick(500)) await new Promise((next) => setImmediate(next));
    return over;
  };
  const silent = await said(t, () => {}, impatient);
  const sentence = `${silent.url} did not answer within 30 seconds.\n`;
  assert.deepEqual(silent.call, [1, '', sentence]);
  assert.deepEqual(silent.everyday, [7, '', sentence]);
  assert.deepEqual(silent.admin, [7, '', sentence]);
  assert.deepEqual(silent.login, [1, '', sentence]);

  const machine = await createMachine(t);
  await machine.writeProfile([sessionAt(silent.url)]);
  const change = ['grant', 'revoke', 'x'];
  const late = sentence.replace('\n', ' It may have been done all the same: look before you try again.\n');
  await says(impatient(machine.run(['admin', ...change])), 7, late, '');
  const lab = await impatient(machine.run(['admin', 'apply', '-f', '-'], { input: '{}' }));
  assert.match(lab.stderr, /did not answer within 1800 seconds\. It may have been done/);

  const half = await said(t, (_seen, response) => void response.write('{"half":'), impatient);
  const again = `${half.url} did not answer within 30 seconds.\n`;
  assert.deepEqual(half.call, [1, '{"half":', again]);
  assert.deepEqual(half.everyday, [7, '', again]);
  assert.deepEqual(half.admin, [7, '', again]);
  assert.deepEqual(half.login, [1, '', again]);
});

test('a reader that takes its time is no server that hangs', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const { url } = await serve(t, (_seen, response) => void response.end(Buffer.alloc(size, 'a')));
  const response = await send({ method: 'GET', url: new URL(url) });
  for (let seconds = 0; seconds < 100; seconds++) {
    t.mock.timers.tick(1_000);
    await new Promise((next) => setImmediate(next));
  }
  assert.equal((await buffer(response)).length, size);
});

test('a server that sends 5 MB is read whole where that is what was asked for, and no more than is needed otherwise', async (t) => {
  const text = 'x'.repeat(size);
  const good = await said(t, (_seen, response) => void response.end(text));
  assert.deepEqual(good.call, [0, text, '']);
  assert.deepEqual(good.everyday, [1, '', `${good.url} did not answer with JSON; is it the Business API?\n`]);
  assert.deepEqual(good.admin, good.everyday);
  const discovery = `${good.url}/.well-known/oauth-protected-resource`;
  assert.deepEqual(good.login, [
    1,
    '',
    `${discovery} did not answer with a JSON object; is this the platform URL?\n`,
  ]);

  const bad = await said(t, (_seen, response) => void response.writeHead(500).end(text));
  assert.deepEqual(bad.call, [1, '', `business: 500 ${'x'.repeat(64 * 1024)}\n`]);
  assert.deepEqual(bad.everyday, [1, '', `${bad.url} answered 500.\n`]);
});

test('a server that sends invalid JSON is one sentence', async (t) => {
  for (const body of ['{"keys": [', '<html>sign in</html>', '', '\u001b[2J']) {
    const { call, everyday, admin, login, url } = await said(t, (_seen, response) => void response.end(body));
    assert.deepEqual(call, [0, body, '']);
    assert.deepEqual(everyday, [1, '', `${url} did not answer with JSON; is it the Business API?\n`]);
    assert.deepEqual(admin, everyday);
    const discovery = `${url}/.well-known/oauth-protected-resource`;
    assert.deepEqual(login, [
      1,
      '',
      `${discovery} did not answer with a JSON object; is this the platform URL?\n`,
    ]);
  }
});

test('a server whose JSON is of another shape is one sentence', async (t) => {
  for (const body of ['null', '[]', '7']) {
    const { everyday, admin, url } = await said(t, (_seen, response) => void response.end(body));
    assert.deepEqual(everyday, [
      1,
      '',
      `${url} did not answer with a JSON object; is it the Business API?\n`,
    ]);
    assert.deepEqual(admin, everyday);
  }
  const user = { primary_email: 'ada@physics.example' };
  const shapes = [
    {},
    { user },
    { user, memberships: {} },
    { user, memberships: [null] },
    { user, memberships: [{}] },
    { user: null, memberships: [] },
  ];
  for (const me of shapes) {
    const machine = await signedIn(t, { 'GET /me': me });
    const { status, stdout, stderr } = await machine.run(['clusters', 'list']);
    assert.deepEqual(
      [status, stdout, stderr],
      [1, '', 'The answer of the Business API to GET /me was not understood; is this its address?\n'],
      JSON.stringify(me),
    );
  }
});

/** What drives a terminal, reverses what follows, or hides: C0, C1, bidirectional and zero-width characters. */
const nasty = '\u001b]0;owned\u0007\u009b2J\u202emoc\u2066\u200b';
const visible = '\\u001b]0;owned\\u0007\\u009b2J\\u202emoc\\u2066\\u200b';
const unsafe = /(?![\t\n])[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069]/u;

test('nothing that a server says drives the terminal, in tables, JSON, YAML and sentences', async (t) => {
  const people = [
    {
      id: 'user_1',
      primary_email: `ada@physics.example${nasty}`,
      display_name: nasty + 'x'.repeat(100),
      lifecycle_state: `active\nroot${nasty}`,
      staff_keys: [],
    },
  ];
  const machine = await signedIn(t, { 'GET /operator/people?limit=200': { people } });
  const list = (format: string) => machine.run(['admin', 'person', 'list', '-o', format]);

  const table = await list('table');
  assert.equal(table.stdout.split('\n').length, 3);
  assert.ok(table.stdout.includes(`ada@physics.example${visible}`));
  assert.ok(table.stdout.includes(`  ${visible}xxx`) && !table.stdout.includes('x'.repeat(80)));
  assert.ok(table.stdout.includes(`active root${visible}`));

  const json = await list('json');
  assert.deepEqual(JSON.parse(json.stdout), { people });
  const yaml = await list('yaml');
  assert.deepEqual(parse(yaml.stdout), { people });
  for (const { stdout, stderr } of [table, json, yaml]) assert.doesNotMatch(stdout + stderr, unsafe);
});

test('a refusal is one line that drives nothing; what was asked for arrives as it is', async (t) => {
  const body = `{"message":"no\r\n${nasty}"}`;
  const machine = await signedIn(t, {
    'GET /refused': (_seen: unknown, response: ServerResponse) => void response.writeHead(403).end(body),
    'GET /operator/organizations': (_seen: unknown, response: ServerResponse) =>
      void response.writeHead(403).end(JSON.stringify({ message: `no\n${nasty}` })),
    'GET /good': (_seen: unknown, response: ServerResponse) => void response.end(nasty),
  });
  const refused = await machine.run(['call', 'business', 'GET', '/refused']);
  assert.deepEqual([refused.stdout, refused.stderr], ['', `business: 403 {"message":"no ${visible}"}\n`]);
  assert.equal((await machine.run(['call', 'business', 'GET', '/good'])).stdout, nasty);
  const { stderr } = await machine.run(['admin', 'organization', 'list']);
  assert.equal(stderr, `no ${visible}\n`);
});

test('an issuer cannot drive the terminal of who signs in', async (t) => {
  const { run } = await createMachine(t);
  const { url } = await startEnvironment(t, {
    device: { user_code: `AB${nasty}`, verification_uri: `https://issuer.example/${nasty}` },
    me: {
      status: 200,
      body: { user: { display_name: `A\n${nasty}`, primary_email: `a@b.example${nasty}` } },
    },
  });
  const { status, stdout, stderr } = await run(['auth', 'login', '--url', url]);
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stdout + stderr, unsafe);
  assert.ok(stdout.includes(`    AB${visible}\n`));
  assert.ok(stdout.includes(`Signed in as A ${visible} <a@b.example${visible}>\n`));
});
