/** What every command over the operator API has in common. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { Command } from 'commander';
import { addAdmin } from '../../../src/cli/admin/program.ts';
import { json, type Seen } from '../harness.ts';
import { noServer } from '../server.ts';
import { refuse, signedIn } from '../small-api.ts';
import { bob, lookups } from './operator-api.ts';

const add = ['admin', 'person', 'add', 'bob@physics.example'];

test('every admin command explains itself, with an example', () => {
  let output = '';
  const program = new Command('andromeda').configureOutput({
    writeOut: (text) => {
      output += text;
    },
  });
  addAdmin(program.command('admin').description('operate'), noServer, () => {});
  const names: string[] = [];
  const visit = (command: Command, path: string) => {
    output = '';
    command.outputHelp();
    assert.match(output, new RegExp(`^Usage: ${path} `), path);
    assert.match(output, /\nExamples?:\n {2}\$ andromeda admin /, path);
    assert.notEqual(command.description(), '');
    if (command.registeredArguments.length > 0 || command.options.length > 0)
      names.push(path.replace('andromeda admin ', ''));
    for (const below of command.commands) visit(below, `${path} ${below.name()}`);
  };
  for (const command of program.commands) visit(command, 'andromeda admin');
  assert.deepEqual(names, [
    'plan',
    'apply',
    'export',
    'problems',
    'installation',
    'audit',
    ...['verify', 'head', 'key', 'accept-break'].map((verb) => `audit ${verb}`),
    ...['list', 'add', 'rename', 'domains', 'sign-in', 'retire'].map((verb) => `organization ${verb}`),
    ...[
      'list',
      'add',
      'staff',
      'password',
      'link',
      'reset-factor',
      'identities',
      'rebind',
      'unbind',
      'email',
      'exempt',
      'erase',
      'deactivate',
      'reactivate',
    ].map((verb) => `person ${verb}`),
    ...['list', 'plan'].map((verb) => `groups ${verb}`),
    ...['list', 'add', 'check', 'release'].map((verb) => `cluster ${verb}`),
    ...['list', 'admit', 'quarantine'].map((verb) => `machine ${verb}`),
    ...['list', 'add', 'revoke'].map((verb) => `grant ${verb}`),
    ...['list', 'accept', 'decline'].map((verb) => `purchase ${verb}`),
    ...['list', 'past', 'close'].map((verb) => `session ${verb}`),
    ...['key', 'sshd'].map((verb) => `gateway ${verb}`),
    'servers list',
    'bootstrap',
    ...['list', 'new'].map((verb) => `key ${verb}`),
    ...['new-key', 'list', 'rotate'].map((verb) => `secrets ${verb}`),
  ]);
});

test('a write carries the token, a fresh UUID as idempotency key, and the command as audit reason', async (t) => {
  const { run, requests } = await signedIn(t, { 'POST /operator/people': bob });
  await run(add);
  await run([...add, '--reason', 'für Zoë – new']);
  const [first, second] = requests.map(({ headers }) => headers);
  assert.equal(first?.authorization, 'Bearer secret-access');
  assert.match(String(first?.['idempotency-key']), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.notEqual(first?.['idempotency-key'], second?.['idempotency-key']);
  assert.equal(first?.['audit-reason'], 'andromeda admin person add');
  assert.equal(Buffer.from(String(second?.['audit-reason']), 'latin1').toString('utf8'), 'für Zoë – new');
});

test('a lost connection is tried again with the same idempotency key', async (t) => {
  let attempts = 0;
  const { run, requests } = await signedIn(t, {
    'POST /operator/people': (_seen: Seen, response: ServerResponse) => {
      attempts++;
      if (attempts === 1) return response.socket?.destroy();
      if (attempts === 2) {
        response.writeHead(200, { 'content-length': '1000' }).write('{');
        return setTimeout(() => response.socket?.destroy(), 20);
      }
      return json(response, 201, bob);
    },
  });
  const { status, stderr } = await run(add);
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map(({ headers }) => headers['idempotency-key'])).size, 1);
});

test('an API that cannot be reached is one sentence and status 7', async (t) => {
  const { run, server, url } = await signedIn(t, {});
  server.close();
  server.closeAllConnections();
  const { status, stdout, stderr } = await run(['admin', 'grant', 'list']);
  assert.deepEqual(
    [status, stdout, stderr],
    [7, '', `Could not reach ${url}: the connection was refused.\n`],
  );
});

test("a refusal is the API's message on one line of stderr, and a status of its own", async (t) => {
  const answers: [(response: ServerResponse) => void, string, number][] = [
    [
      (response) => refuse(response, 403, 'You need\nthe staff key staff.read.'),
      'You need the staff key staff.read.',
      4,
    ],
    [(response) => json(response, 409, { code: 'x', error: 'Told the old way.' }), 'Told the old way.', 6],
    [(response) => refuse(response, 400, 'That is wrong.'), 'That is wrong.', 1],
    [(response) => refuse(response, 401, 'Who are you?'), 'Who are you?', 3],
    [(response) => refuse(response, 404, 'There is none.'), 'There is none.', 5],
    [(response) => refuse(response, 500, 'It broke.'), 'It broke.', 1],
    [(response) => refuse(response, 503, 'Not offered.'), 'Not offered.', 1],
    [(response) => json(response, 503, { message: 'Later.', retryable: true }), 'Later.', 7],
    [(response) => void response.writeHead(502).end('<html>'), 'URL answered 502.', 7],
    [(response) => void response.writeHead(302, { location: '/x' }).end(), 'URL answered 302.', 1],
    [(response) => void response.end('hello'), 'URL did not answer with JSON; is it the Business API?', 1],
  ];
  let answer: (response: ServerResponse) => void = () => {};
  const { run, url } = await signedIn(t, {
    'GET /operator/grants': (_seen: Seen, response: ServerResponse) => answer(response),
  });
  for (const [next, sentence, expected] of answers) {
    answer = next;
    for (const format of ['table', 'json']) {
      const { status, stdout, stderr } = await run(['admin', 'grant', 'list', '-o', format]);
      assert.deepEqual([status, stdout, stderr], [expected, '', `${sentence.replace('URL', url)}\n`]);
    }
  }
});

test("-o json prints the API's JSON", async (t) => {
  const extra = { ...bob, added_later: [1] };
  const { run } = await signedIn(t, {
    ...lookups,
    'POST /operator/people': extra,
    'GET /operator/grants': { grants: [] },
  });
  const rows: [string[], unknown][] = [
    [['admin', 'cluster', 'list', '-o', 'json'], lookups['GET /operator/clusters']],
    [[...add, '--output=json'], extra],
    [['admin', 'grant', 'list', '-o', 'json'], { grants: [] }],
    [['admin', 'person', 'list', '-o', 'json'], { people: [bob] }],
  ];
  for (const [args, expected] of rows) {
    const { status, stdout, stderr } = await run(args);
    assert.deepEqual([status, stderr], [0, '']);
    assert.deepEqual(JSON.parse(stdout), expected);
  }
});

test('people are read page by page', async (t) => {
  const eve = { ...bob, id: 'user_eve', primary_email: 'eve@physics.example' };
  const { run } = await signedIn(t, {
    'GET /operator/people?limit=200': { people: [bob], next_page_token: 'a b' },
    'GET /operator/people?limit=200&after=a+b': { people: [eve] },
  });
  const { stdout } = await run(['admin', 'person', 'list']);
  assert.match(stdout, /^EMAIL.*\nbob@.*\neve@.*\n$/);
});

test('control characters of names never reach the terminal, nor break a row', async (t) => {
  const { run } = await signedIn(t, {
    'GET /operator/people?limit=200': { people: [{ ...bob, display_name: 'B\u001b[2J\nob' }] },
  });
  const { stdout } = await run(['admin', 'person', 'list']);
  assert.equal(
    stdout,
    'EMAIL                NAME           STATE   STAFF  ID\nbob@physics.example  B\\u001b[2J ob  active  -      user_bob\n',
  );
});

test('no session is one sentence and status 3, and --profile and --url choose the session', async (t) => {
  const { run, url, requests } = await signedIn(t, { 'GET /operator/grants': { grants: [] } });
  const list = ['admin', 'grant', 'list'];
  const other = await run([...list, '--profile', 'other']);
  assert.deepEqual(
    [other.status, other.stderr],
    [3, 'You are not signed in; run `andromeda auth login --profile other --url <platform_url>`.\n'],
  );
  assert.equal(requests.length, 0);
  assert.equal((await run([...list, '--url', url])).status, 0);
});
