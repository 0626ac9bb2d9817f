/** What every command over the operator API has in common: requests, command lines that are wrong, and names that name nothing. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { parseStart, parseTime, pick } from '../../../src/cli/arguments.ts';
import { json, type Seen, says } from '../harness.ts';
import { changesTaken, refuse, signedIn, taken } from '../small-api.ts';
import { alpha, alphaId, bob, lookups } from './operator-api.ts';

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

test('a wrong command line is one sentence and status 2, and nothing is changed', async (t) => {
  const { run, requests } = await signedIn(t, lookups);
  const rows: [string, string][] = [
    [
      'cluster release alpha',
      'Releasing alpha cannot be undone; say `andromeda admin cluster release alpha --yes`.',
    ],
    ['organization domains physics', 'Give the domains, all of them, or --none for none.'],
    [
      'person staff bob@physics.example staff.read --none',
      'Give the staff keys, all of them, or --none for none.',
    ],
    ['machine list', "Required option '--cluster <name>' not specified; see `andromeda --help`."],
    ['cluster add beta --simulated two', "'two' is not NODESxGPUS; 2x8 is two nodes with eight GPUs each."],
    ['cluster add beta --site-name Room', '--site-name goes with --site-id.'],
    ['session past --to=noon', "'noon' is not a time for --to; write 2030-01-31 or 2030-01-31T09:00:00Z."],
    ['person add x@y.example --reason=a\nb', '--reason takes one line of 1 to 500 characters.'],
    ['audit --since long', "'long' is not a time span for --since; write 30m, 2h or 7d."],
    [
      'audit --since=2h --from=2030-01-01',
      "Option '--since <span>' cannot be used with option '--from <time>'; see `andromeda --help`.",
    ],
    ['audit verify --head 12', "'12' is not a head as `andromeda admin audit verify` prints it."],
  ];
  for (const [args, sentence] of rows) {
    await says(run(['admin', ...args.split(' ')]), 2, `${sentence}\n`, '');
    assert.deepEqual(changesTaken(requests), []);
  }
});

test('a name that names nothing is one sentence that lists what there is, and status 5', async (t) => {
  const { run, requests } = await signedIn(t, {
    ...lookups,
    'GET /operator/people?email=eve%40physics.example&limit=200': { people: [] },
  });
  const rows: [string, string][] = [
    ['organization rename chemistry Chemistry', "There is no organization 'chemistry'; there are: physics."],
    ['cluster release beta --yes', "There is no cluster 'beta'; there are: alpha."],
    [
      'person deactivate Eve@physics.example',
      "There is no person 'eve@physics.example'; there are: bob@physics.example.",
    ],
    ['machine admit node-9 --cluster alpha', "There is no machine on alpha 'node-9'; there are: node-1."],
  ];
  for (const [args, sentence] of rows) {
    await says(run(['admin', ...args.split(' ')]), 5, `${sentence}\n`, '');
    assert.deepEqual(changesTaken(requests), []);
  }
});

test('a name beats an ID, a short beginning of an ID is none, and what fits several is refused', () => {
  const kind = ['cluster', 'clusters'] as const;
  const labelsOf = ({ name, id }: { name: string; id: string }) => [name, id] as const;
  const items = [
    { name: 'a', id: '7b6f1f0e-1' },
    { name: 'b', id: '7b6f1f0e-2' },
    { name: '7b6f1f0e-1', id: 'c6f1f0e3-0' },
  ];
  const found = (wanted: string) => {
    try {
      return pick(kind, items, wanted, labelsOf).id;
    } catch (error) {
      return (error as Error).message;
    }
  };
  assert.equal(found('a'), '7b6f1f0e-1');
  assert.equal(found('7b6f1f0e-2'), '7b6f1f0e-2');
  assert.equal(found('c6f1f0e3'), 'c6f1f0e3-0');
  assert.match(found('c6f1'), /^There is no cluster 'c6f1'; there are: 7b6f1f0e-1, a, b\.$/);
  assert.equal(found('7b6f1f0e'), "'7b6f1f0e' fits several clusters: a (7b6f1f0e-1), b (7b6f1f0e-2).");
  assert.equal(
    found('7b6f1f0e-1'),
    "'7b6f1f0e-1' fits several clusters: a (7b6f1f0e-1), 7b6f1f0e-1 (c6f1f0e3-0).",
  );
  const many = Array.from({ length: 12 }, (_, n) => ({ name: `n${n}`, id: `${n}` }));
  assert.throws(() => pick(kind, many, 'x', labelsOf), {
    message: "There is no cluster 'x'; there are: n0, n1, n10, n11, n2, n3, n4, n5, n6, n7 and 2 more.",
  });
  assert.throws(() => pick(kind, [], 'x', labelsOf), {
    message: "There is no cluster 'x'; there are no clusters.",
  });
});

test('a name that several clusters had over time is the one in service', async (t) => {
  const old = { ...alpha, cluster: { id: `0000${alphaId.slice(4)}`, state: 'released' } };
  const { run, requests } = await signedIn(t, {
    'GET /operator/clusters': { clusters: [old, alpha] },
    [`POST /operator/clusters/${alphaId}/release`]: alpha,
  });
  assert.equal((await run(['admin', 'cluster', 'release', 'alpha', '--yes'])).status, 0);
  assert.equal(taken(requests)[1], `POST /operator/clusters/${alphaId}/release`);
});

test('an empty password on standard input, or one that cannot be typed again, changes nothing', async (t) => {
  const { run, requests } = await signedIn(t, { ...lookups, 'PUT /operator/people/user_bob/password': bob });
  const empty = 'The password is empty; nothing was changed.\n';
  for (const [input, sentence] of [
    ['', empty],
    ['\n', empty],
    ['\nsecret\n', empty],
    ['sec\u007fret\n', 'A password has no control characters; nothing was changed.\n'],
  ] as const) {
    await says(run(['admin', 'person', 'password', 'bob@physics.example'], { input }), 1, sentence, '');
  }
  assert.ok(requests.every(({ method }) => method === 'GET'));
});

test('times and time spans are RFC 3339 in UTC', (t) => {
  assert.equal(parseTime('--from', undefined), undefined);
  assert.equal(parseTime('--from', '2026-01-02'), '2026-01-02T00:00:00.000Z');
  assert.equal(parseTime('--from', '2026-01-02T03:00:00+02:00'), '2026-01-02T01:00:00.000Z');
  for (const wrong of ['', 'today', '2026-13-01', '02.01.2026', '12'])
    assert.throws(() => parseTime('--from', wrong));
  assert.equal(parseStart('2026-01-02', undefined), '2026-01-02T00:00:00.000Z');
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-08T00:00:00Z') });
  assert.equal(parseStart(undefined, '90s'), '2026-01-07T23:58:30.000Z');
  assert.equal(parseStart(undefined, '2h'), '2026-01-07T22:00:00.000Z');
  assert.equal(parseStart(undefined, '7d'), '2026-01-01T00:00:00.000Z');
  for (const wrong of ['', 'h', '2', '-2h', '2 h', '2y']) assert.throws(() => parseStart(undefined, wrong));
});
