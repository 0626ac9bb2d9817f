import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { parseCall } from '../../src/cli/commands/call.ts';
import { fillPath } from '../../src/cli/net/api.ts';
import { program } from '../support/program.ts';
import { createMachine, json, type Seen, says, serve, sessionAt } from './harness.ts';

/** A machine signed in to a server that answers as told. */
async function signedIn(
  t: TestContext,
  answer: Parameters<typeof serve>[1] = (_seen, response) => json(response, 200, {}),
) {
  const machine = await createMachine(t);
  const api = await serve(t, answer);
  await machine.writeProfile([sessionAt(api.url)]);
  return { ...machine, ...api };
}

function only(requests: Seen[]): Seen {
  const [first] = requests;
  assert.equal(requests.length, 1);
  assert.ok(first);
  return first;
}

test('a 2xx body reaches stdout byte for byte, nothing else does, and the status is 0', async (t) => {
  const body = Buffer.from([0, 255, 254, 10, 13, 0x1b, 0xc3, 0x28]);
  const { run, requests } = await signedIn(t, (_seen, response) => void response.writeHead(201).end(body));
  const { status, bytes, stderr } = await run(['call', 'business', 'GET', '/me?a=b%20c&d']);
  assert.deepEqual([status, stderr, bytes], [0, '', body]);
  const seen = only(requests);
  assert.equal(seen.url, '/me?a=b%20c&d');
  assert.equal(seen.headers.authorization, 'Bearer secret-access');
});

test('a reader that closes the pipe early is no failure', async (t) => {
  const { directory, url } = await signedIn(
    t,
    (_seen, response) => void response.end(Buffer.alloc(8 * 1024 * 1024, 'a')),
  );
  const child = spawn(
    'bash',
    ['--norc', '-c', '"$0" call platform GET /big | head -c 3; echo ":$PIPESTATUS"', program],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, XDG_STATE_HOME: join(directory, '..'), ANDROMEDA_URL: url },
    },
  );
  assert.deepEqual(await Promise.all([text(child.stdout), text(child.stderr)]), ['aaa:0\n', '']);
});

test('any other status is one line on stderr with API, status and body, and status 1', async (t) => {
  const error = { code: 'forbidden', message: 'not yours', retryable: false };
  const { run } = await signedIn(t, (_seen, response) => json(response, 403, error));
  const { status, stdout, stderr } = await run(['call', 'platform', 'GET', '/clusters']);
  assert.deepEqual([status, stdout], [1, '']);
  assert.equal(stderr, 'platform: 403 {"code":"forbidden","message":"not yours","retryable":false}\n');
});

test('business and platform each have their own address', async (t) => {
  const machine = await createMachine(t);
  const business = await serve(t, (_seen, response) => void response.end('business'));
  const platform = await serve(t, (_seen, response) => void response.end('platform'));
  await machine.writeProfile([sessionAt(platform.url, { businessUrl: `${business.url}/base` })]);
  assert.equal((await machine.run(['call', 'business', 'GET', '/me'])).stdout, 'business');
  assert.equal((await machine.run(['call', 'platform', 'GET', '/me'])).stdout, 'platform');
  assert.equal(only(business.requests).url, '/base/me');
});

test('headers are sent as given, also twice the same, also in UTF-8', async (t) => {
  const { run, requests } = await signedIn(t);
  const twice = ['--header', 'x-two:1', '-H', 'x-two: 2'];
  const headers = ['-H', 'X-One: a: b ', ...twice, '-H', 'Audit-Reason: für Zoë – ok'];
  assert.equal((await run(['call', ...headers, 'business', 'GET', '/me'])).status, 0);
  const { headers: seen } = only(requests);
  assert.equal(seen['x-one'], 'a: b');
  assert.equal(seen['x-two'], '1, 2');
  assert.equal(Buffer.from(String(seen['audit-reason']), 'latin1').toString('utf8'), 'für Zoë – ok');
});

test('data is a value, a file or standard input, and is JSON unless said otherwise', async (t) => {
  const { run, requests, directory } = await signedIn(t);
  const file = join(directory, 'body.json');
  await writeFile(file, Buffer.from([1, 0, 255]));
  await run(['call', '-d', '{"a":1}', 'business', 'POST', '/value']);
  await run(['call', `--data=@${file}`, '-H', 'content-TYPE: text/plain', 'business', 'PUT', '/file']);
  await run(['call', '-d', '@-', 'business', 'PATCH', '/stdin'], { input: 'from stdin' });
  await run(['call', '-d', '', 'business', 'GET', '/empty']);
  await run(['call', 'business', 'POST', '/none']);
  const got = requests.map(({ url, body, headers }) => [
    url,
    body.toString('latin1'),
    headers['content-type'],
  ]);
  assert.deepEqual(got, [
    ['/value', '{"a":1}', 'application/json'],
    ['/file', '\u0001\u0000ÿ', 'text/plain'],
    ['/stdin', 'from stdin', 'application/json'],
    ['/empty', '', 'application/json'],
    ['/none', '', undefined],
  ]);
});

test('a body file that cannot be read is said, and nothing is sent', async (t) => {
  const { run, requests } = await signedIn(t);
  const { status, stderr } = await run(['call', '-d', '@/nowhere/x', 'business', 'POST', '/x']);
  assert.deepEqual(
    [status, stderr],
    [1, "The body cannot be read from '/nowhere/x': there is no such file.\n"],
  );
  assert.equal(requests.length, 0);
});

test('a wrong command line is one sentence and status 2, and nothing is sent', async (t) => {
  const { run, requests } = await signedIn(t);
  const rows: [string[], string][] = [
    [['business', 'GET', '/me', '-H', 'a: b'], "Flags come before the API name; '-H' stands after it."],
    [['-H', 'Authorization: Bearer x', 'business', 'GET', '/me'], reserved('Authorization')],
    [['business', 'GET'], "Missing required argument 'path'; see `andromeda --help`."],
    [['-d', '1', '-d', '2', 'business', 'POST', '/me'], '-d/--data may be given once.'],
    [['--frob', 'business', 'GET', '/me'], "Unknown option '--frob'; see `andromeda --help`."],
  ];
  for (const [args, sentence] of rows) {
    await says(run(['call', ...args]), 2, `${sentence}\n`, '');
  }
  assert.equal(requests.length, 0);
});

test('every argument and header of call is checked', () => {
  const refused = (args: string, headers: string[], message: string) =>
    assert.throws(() => parseCall(args.split(' '), headers), { name: 'CliError', outcome: 'usage', message });
  for (const [args, message] of [
    ['business GET /me --url=x', "Flags come before the API name; '--url=x' stands after it."],
    ['business GET /me more', "'more' is too much; call takes an API, a method and a path."],
    ['other GET /me', "'other' is not an API; the two are business and platform."],
    ['business TRACE /', "'TRACE' is not a method; use GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS."],
    ['business GET me', "The path begins with '/'; 'me' does not."],
    ['business GET /me#x', "The path has no fragment; write '#' as %23."],
  ] as const)
    refused(args, [], message);
  for (const name of ['aUTHORIZATION', 'Host']) refused('business GET /', [`${name}:x`], reserved(name));
  for (const header of [
    'a b: c',
    ': c',
    ' Authorization: x',
    'Authorization : x',
    'a: b\r\nAuthorization: x',
  ])
    refused(
      'business GET /',
      [header],
      `'${header.replace('\r\n', '  ')}' is not a header; write 'Name: value'.`,
    );
  for (const method of ['get', 'POST', 'Put', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])
    assert.deepEqual(parseCall(['platform', method, '/a?b'], ['X-Empty:']), {
      api: 'platform',
      method: method.toUpperCase(),
      path: '/a?b',
      headers: [['X-Empty', '']],
    });
});

function reserved(name: string): string {
  return `The header ${name} may not be given; the client sets it itself.`;
}

test('a path can not lead the token to another host', async (t) => {
  const { run, requests } = await signedIn(t);
  for (const path of ['//elsewhere.example/x', '/\\elsewhere.example/x', '/@elsewhere.example', '/../x'])
    assert.equal((await run(['call', 'business', 'GET', path])).status, 0);
  assert.equal(requests.length, 4);
});

test('a session goes to its own environment only', async (t) => {
  const { run } = await signedIn(t);
  const other = await serve(t, (_seen, response) => json(response, 200, {}));
  const sentence = `You are not signed in to ${other.url}; run \`andromeda auth login --url ${other.url}\`.\n`;
  await says(run(['call', '--url', other.url, 'business', 'GET', '/me']), 1, sentence);
  const variable = await run(['call', 'business', 'GET', '/me'], { env: { ANDROMEDA_URL: `${other.url}/` } });
  assert.deepEqual([variable.status, variable.stderr], [1, sentence]);
  assert.equal(other.requests.length, 0);
});

test('one profile holds sessions of several environments; --url and ANDROMEDA_URL choose among them', async (t) => {
  const machine = await createMachine(t);
  const one = await serve(t, (_seen, response) => void response.end('one'));
  const two = await serve(t, (_seen, response) => void response.end('two'));
  await machine.writeProfile([sessionAt(one.url), sessionAt(two.url, { accessToken: 'secret-two' })], 'work');
  const get = ['platform', 'GET', '/x'];
  const env = { ANDROMEDA_PROFILE: 'work' };
  assert.equal((await machine.run(['call', ...get], { env })).stdout, 'one');
  const named = ['--profile', 'work', '--url', `${two.url}/`];
  assert.equal((await machine.run(['call', ...named, ...get])).stdout, 'two');
  const both = { ...env, ANDROMEDA_URL: two.url };
  assert.equal((await machine.run(['call', ...get], { env: both })).stdout, 'two');
  assert.equal(one.requests[0]?.headers.authorization, 'Bearer secret-access');
  assert.ok(two.requests.every(({ headers }) => headers.authorization === 'Bearer secret-two'));
});

test('plain http to another machine, and addresses that are none, are refused', async (t) => {
  const { run } = await signedIn(t);
  const rows: [string, string][] = [
    [
      'http://platform.example',
      'http://platform.example is plain http; only https is used, except towards this machine itself.',
    ],
    [
      'platform.example',
      "'platform.example' is not a platform URL; it looks like https://platform.example.org.",
    ],
    ['https://ada:pw@platform.example', 'A platform URL carries no user name, password, query or fragment.'],
  ];
  for (const [url, sentence] of rows) {
    await says(run(['call', '--url', url, 'business', 'GET', '/me']), 2, `${sentence}\n`);
  }
  const sentence = 'A profile name has 1 to 64 letters, digits, dots, underscores or hyphens.\n';
  await says(run(['call', '--profile', '../x', 'business', 'GET', '/me']), 2, sentence);
});

test('a token is never sent over plain http, whatever the session file says', async (t) => {
  const machine = await createMachine(t);
  const url = 'http://platform.example';
  await machine.writeProfile([sessionAt(url)]);
  const { status, stderr } = await machine.run(['call', 'platform', 'GET', '/x']);
  assert.deepEqual([status, stderr], [1, `The session does not belong to ${url}; nothing was sent.\n`]);
});

test('an unreachable, a hung-up and a foreign server are one sentence each', async (t) => {
  const gone = await signedIn(t);
  await new Promise((resolve) => gone.server.close(resolve));
  const refused = await gone.run(['call', 'business', 'GET', '/me']);
  assert.deepEqual(
    [refused.status, refused.stderr],
    [1, `Could not reach ${gone.url}: the connection was refused.\n`],
  );

  const { run, url } = await signedIn(t, (_seen, response) => void response.destroy());
  const sentence = `Could not reach ${url}: the connection was closed before the whole answer came.\n`;
  await says(run(['call', 'business', 'GET', '/me']), 1, sentence);

  const machine = await createMachine(t);
  const secure = url.replace('http:', 'https:');
  await machine.writeProfile([sessionAt(secure)]);
  const tls = await machine.run(['call', 'business', 'GET', '/me']);
  assert.deepEqual(
    [tls.status, tls.stderr],
    [1, `Could not reach ${secure}: it does not speak TLS as expected.\n`],
  );
});

test('a success cut short is a failure', async (t) => {
  const { run, url } = await signedIn(t, (_seen, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half', () => response.destroy());
  });
  const sentence = `Could not reach ${url}: the connection was closed before the whole answer came.\n`;
  await says(run(['call', 'business', 'GET', '/me']), 1, sentence, 'half');
});

const rows: [string, Parameters<typeof fillPath>[1], string][] = [
  ['/me', {}, '/me'],
  ['/a/{b}/c/{d}', { path: { b: 'x/y?', d: 'ü' } }, '/a/x%2Fy%3F/c/%C3%BC'],
  ['/a', { query: { after: undefined, limit: 200, name: 'a b&c' } }, '/a?limit=200&name=a+b%26c'],
  ['/a', { query: { after: undefined } }, '/a'],
];
for (const [path, given, expected] of rows)
  test(`${path} is called as ${expected}`, () => assert.equal(fillPath(path, given), expected));
