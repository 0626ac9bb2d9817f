/** What every command over the operator API has in common. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { json, type Seen, says } from '../harness.ts';
import { refuse, signedIn } from '../small-api.ts';
import { bob, lookups } from './operator-api.ts';

const add = ['admin', 'person', 'add', 'bob@physics.example'];

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
      if (attempts === 1) return void response.socket?.destroy();
      if (attempts === 2) {
        response.writeHead(200, { 'content-length': '1000' }).write('{');
        return void setTimeout(() => response.socket?.destroy(), 20);
      }
      return json(response, 201, bob);
    },
  });
  await says(run(add), 0, '');
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map(({ headers }) => headers['idempotency-key'])).size, 1);
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
  const { run, server, url } = await signedIn(t, {
    'GET /operator/grants': (_seen: Seen, response: ServerResponse) => answer(response),
  });
  for (const [next, sentence, expected] of answers) {
    answer = next;
    for (const format of ['table', 'json']) {
      const { status, stdout, stderr } = await run(['admin', 'grant', 'list', '-o', format]);
      assert.deepEqual([status, stdout, stderr], [expected, '', `${sentence.replace('URL', url)}\n`]);
    }
  }
  server.close();
  server.closeAllConnections();
  await says(run(['admin', 'grant', 'list']), 7, `Could not reach ${url}: the connection was refused.\n`);
});

test("-o json prints the API's JSON, of all pages together", async (t) => {
  const extra = { ...bob, added_later: [1] };
  const eve = { ...bob, id: 'user_eve' };
  const { run } = await signedIn(t, {
    ...lookups,
    'POST /operator/people': extra,
    'GET /operator/grants': { grants: [] },
    'GET /operator/people?limit=200': { people: [bob], next_page_token: 'a b' },
    'GET /operator/people?limit=200&after=a+b': { people: [eve] },
  });
  const rows: [string[], unknown][] = [
    [['admin', 'cluster', 'list', '-o', 'json'], lookups['GET /operator/clusters']],
    [[...add, '--output=json'], extra],
    [['admin', 'grant', 'list', '-o', 'json'], { grants: [] }],
    [['admin', 'person', 'list', '-o', 'json'], { people: [bob, eve] }],
  ];
  for (const [args, expected] of rows) {
    const { status, stdout, stderr } = await run(args);
    assert.deepEqual([status, stderr], [0, '']);
    assert.deepEqual(JSON.parse(stdout), expected);
  }
});
