/** The installation as a file: `admin plan`, `apply` and `export`; and groups at the issuer: `admin groups list` and `plan`. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { json, type Seen, says } from '../harness.ts';
import { type Routes, refuse, signedIn, taken } from '../small-api.ts';
import { alpha } from './operator-api.ts';

const nothing = { changes: [], restarts: [] };
const plan = {
  changes: [
    { action: 'create', kind: 'member', name: 'physics/carl@physics.example', details: 'member, carl' },
    { action: 'remove', kind: 'member', name: 'physics/bob@physics.example', details: '' },
  ],
  restarts: [
    {
      cluster_id: alpha.cluster.id,
      cluster_name: 'alpha',
      added: ['carl', 'dora'],
      removed: ['bob'],
      restarts: ['login', 'controller', 'accounting', 'compute'],
      ended_jobs: [
        { id: '17', user: 'ada', name: 'train llm', machines: ['node-1', 'node-2'] },
        { id: '18', user: 'bob', name: 'x', machines: ['node-1'] },
      ],
    },
    {
      cluster_id: 'c2',
      cluster_name: 'beta',
      added: ['carl'],
      removed: [],
      restarts: ['login'],
      ended_jobs: [],
    },
  ],
};
const golden = `ACTION  KIND    NAME                          WHAT
create  member  physics/carl@physics.example  member, carl
remove  member  physics/bob@physics.example   -

On cluster alpha:
  New login accounts: carl, dora.
  Login accounts that go: bob.
  Restarts, in this order: login nodes, then Slurm controller, then accounting service, then compute nodes one at a time.
  Running jobs that end:
    JOB  USER  NAME       MACHINES
    17   ada   train llm  node-1,node-2
    18   bob   x          node-1

On cluster beta:
  New login accounts: carl.
  Restarts, in this order: login nodes.
  No running job ends.
`;

async function withFile(t: TestContext, routes: Routes, text: string) {
  const machine = await signedIn(t, routes);
  const file = join(machine.directory, 'lab.yaml');
  await writeFile(file, text);
  return { ...machine, file };
}

test('admin plan shows what would change, restart and end, and sends no audit reason', async (t) => {
  const { run, file, requests } = await withFile(t, { 'POST /operator/lab/plan': plan }, 'users: []\n');
  await says(run(['admin', 'plan', '-f', file, '--prune']), 0, '', golden);
  assert.equal(requests[0]?.headers['idempotency-key'], undefined);
  assert.equal(requests[0]?.headers['audit-reason'], undefined);
  assert.deepEqual(taken(requests), ['POST /operator/lab/plan {"lab":{"users":[]},"prune":true}']);
  const asJson = await run(['admin', 'plan', '-f', file, '-o', 'json']);
  assert.deepEqual(JSON.parse(asJson.stdout), plan);
});

test('a plan or an apply without changes says so', async (t) => {
  const routes = { 'POST /operator/lab/plan': nothing, 'POST /operator/lab': nothing };
  const { run, file } = await withFile(t, routes, '');
  assert.equal((await run(['admin', 'plan', '-f', file])).stdout, 'Nothing would change.\n');
  assert.equal((await run(['admin', 'apply', '-f', file])).stdout, 'Nothing to change.\n');
});

test('admin apply goes on without asking where there is no terminal, and prints what was done', async (t) => {
  const { run, file, requests } = await withFile(t, { 'POST /operator/lab': plan }, 'grants: []\n');
  for (const args of [
    ['-f', file],
    ['-f', file, '--yes'],
    ['--file', '-'],
  ]) {
    await says(run(['admin', 'apply', ...args], { input: '{ grants: [] }' }), 0, '', golden);
    assert.equal(requests[0]?.headers['audit-reason'], 'andromeda admin apply');
    assert.deepEqual(taken(requests), ['POST /operator/lab {"lab":{"grants":[]},"prune":false}']);
  }
});

test('admin export is a file that apply sends back as it was', async (t) => {
  const lab = {
    users: [{ email: 'ada@physics.example', name: 'yes', staff: ['staff.operate'] }],
    organizations: [{ slug: 'null', name: `Zoë's: "long ${'name '.repeat(40)}" #1` }],
    clusters: [{ name: '007', id: alpha.cluster.id, organization: 'null', site: { id: '1e3', name: ' x ' } }],
    grants: [{ user: 'e@x.example', cluster: '007', expiresAt: '2030-01-01T00:00:00Z', roleId: '0x1f' }],
  };
  const { run, requests } = await signedIn(t, { 'GET /operator/lab': lab, 'POST /operator/lab': nothing });
  const { status, stdout, stderr } = await run(['admin', 'export']);
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /^users:\n {2}- email: ada@physics\.example\n/);
  taken(requests);
  assert.equal((await run(['admin', 'apply', '-f', '-'], { input: stdout })).stdout, 'Nothing to change.\n');
  assert.deepEqual(JSON.parse(String(requests[0]?.body)), { lab, prune: false });
  assert.deepEqual(JSON.parse((await run(['admin', 'export', '-o', 'json'])).stdout), lab);
});

test('a file that cannot be read is one sentence with its name, line and column, and nothing is sent', async (t) => {
  const { run, directory, requests } = await signedIn(t, {});
  const notYaml = 'not readable as YAML: ';
  const rows: [string, string][] = [
    [
      'a: [1\nb: 2\n',
      `:2:1: ${notYaml}Flow sequence in block collection must be sufficiently indented and end with a ].`,
    ],
    ['a: 1\na: 2\n', `:2:1: ${notYaml}Map keys must be unique.`],
    [
      'a: 1\n---\nb: 2\n',
      ':2:1: a second document begins here (---). A file can have one: put it into another.',
    ],
    ['- 1\n', ': this is not a map of keys and values.'],
    ['a: *b\n', `: ${notYaml}Unresolved alias (the anchor must be set before the alias): b.`],
  ];
  for (const [text, sentence] of rows) {
    const file = join(directory, 'broken.yaml');
    await writeFile(file, text);
    await says(run(['admin', 'apply', '-f', file]), 1, `${file}${sentence}\n`, '');
  }
  const missing = await run(['admin', 'plan', '-f', '/nowhere/lab.yaml']);
  assert.equal(missing.stderr, '/nowhere/lab.yaml cannot be read: there is no such file.\n');
  const folder = await run(['admin', 'plan', '-f', directory]);
  assert.equal(folder.stderr, `${directory} cannot be read: it is a directory.\n`);
  assert.equal(requests.length, 0);
});

test('a refusal of something in the file names its line', async (t) => {
  const text =
    '# ours\nusers: []\norganizations:\n  - slug: a\n    members:\n      - { email: a@x.example, role: chief }\n';
  let sentence = '';
  const { run, file } = await withFile(
    t,
    { 'POST /operator/lab': (_seen: Seen, response: ServerResponse) => refuse(response, 422, sentence) },
    text,
  );
  for (const [line, fault] of [
    [6, 'The field lab.organizations.0.members.0.role of the body must be one of owner,admin,member.'],
    [4, 'Organization a needs an owner.'],
    [undefined, 'Organization b needs an owner.'],
  ] as const) {
    sentence = fault;
    const at = line === undefined ? file : `${file}:${line}`;
    assert.equal((await run(['admin', 'apply', '-f', file])).stderr, `${at}: ${fault}\n`);
  }
});

test("a refusal of the file's content begins with the file's name, any other does not", async (t) => {
  let status = 422;
  const { run, file } = await withFile(
    t,
    {
      'POST /operator/lab': (_seen: Seen, response: ServerResponse) =>
        refuse(response, status, 'lab.users[0] lacks email.'),
    },
    'users: [{}]\n',
  );
  for (status of [400, 409, 422]) {
    const expected = status === 409 ? 6 : 1;
    await says(run(['admin', 'apply', '-f', file]), expected, `${file}: lab.users[0] lacks email.\n`);
  }
  status = 403;
  assert.equal((await run(['admin', 'apply', '-f', file])).stderr, 'lab.users[0] lacks email.\n');
});

test('paths in the file are relative to the file', async (t) => {
  const routes = {
    'POST /operator/lab/plan': nothing,
    'POST /operator/clusters': (_seen: Seen, response: ServerResponse) => json(response, 201, alpha),
  };
  const beta = {
    name: 'beta',
    slurm: { loginMode: 'Shared', manage: { user: 'root', identityFile: 'keys/manage' } },
    kubernetes: { kubeconfig: '../beta.kubeconfig' },
  };
  const absolute = { name: 'gamma', kubernetes: { kubeconfig: '/etc/gamma.kubeconfig' } };
  const odd = [{ name: 'delta', slurm: 1, kubernetes: { kubeconfig: 7 } }, 'no cluster', null];
  const lab = { clusters: [beta, absolute, ...odd] };
  const { run, file, directory, requests } = await withFile(t, routes, JSON.stringify(lab));
  const whole = {
    ...beta,
    slurm: { loginMode: 'Shared', manage: { user: 'root', identityFile: join(directory, 'keys/manage') } },
    kubernetes: { kubeconfig: join(directory, '../beta.kubeconfig') },
  };
  assert.equal((await run(['admin', 'plan', '-f', file])).status, 0);
  assert.deepEqual(JSON.parse(String(requests[0]?.body)).lab, { clusters: [whole, absolute, ...odd] });

  await writeFile(file, JSON.stringify(beta));
  const flags = ['--organization', 'physics', '--scheduler', 'sunk'];
  assert.equal((await run(['admin', 'cluster', 'add', 'epsilon', '-f', file, ...flags])).status, 0);
  assert.deepEqual(JSON.parse(String(requests[1]?.body)), {
    ...whole,
    name: 'epsilon',
    organization: 'physics',
    scheduler: 'sunk',
  });
});

const rule = { group: 'physics-gpu', organization: 'physics', permissions: ['clusters.ssh'] };
const groups = {
  claim: 'groups',
  people: { known: 15, unknown: 2 },
  groups: [
    { group: 'physics-gpu', people: 12, rules: [{ ...rule, role: 'member' }] },
    { group: 'staff', people: 15, rules: [] },
  ],
};
const groupsPlan = {
  people: { known: 15, unknown: 2 },
  changes: [
    { organization: 'physics', what: 'clusters.ssh', gain: 12, lose: 3 },
    { organization: 'physics', what: 'membership', gain: 12, lose: 0 },
  ],
  kept_owners: ['ada@physics.example'],
  restarts: [
    {
      cluster_id: 'c1',
      cluster_name: 'alpha',
      added: ['zoe'],
      removed: [],
      restarts: ['login'],
      ended_jobs: [],
    },
  ],
};
const planText = `ORGANIZATION  WHAT          GAIN  LOSE
physics       clusters.ssh  12    3
physics       membership    12    0

ada@physics.example stays owner: there is no other.

On cluster alpha:
  New login accounts: zoe.
  Restarts, in this order: login nodes.
  No running job ends.

Groups of 15 people are known. Of 2 no groups are known: they count from their next sign-in.
`;

test('admin groups list shows each group, and what it gives', async (t) => {
  const { run, requests } = await signedIn(t, {
    'GET /operator/groups': groups,
    'GET /operator/groups?email=zoe%40physics.example': { ...groups, groups: [] },
  });
  const { stdout } = await run(['admin', 'groups', 'list']);
  assert.equal(
    stdout,
    'GROUP        PEOPLE  GIVES\nphysics-gpu  12      physics:member+clusters.ssh\nstaff        15      -\n',
  );
  taken(requests);
  const { stderr } = await run(['admin', 'groups', 'list', '--email', 'zoe@physics.example']);
  assert.equal(stderr, 'No groups are known.\n');
});

test('admin groups plan sends the rules of a file, or of a configuration and nothing else of that', async (t) => {
  const { run, requests, directory } = await signedIn(t, { 'POST /operator/groups/plan': groupsPlan });
  const asked = `POST /operator/groups/plan ${JSON.stringify({ rules: [rule] })}`;
  const file = join(directory, 'rules.yaml');
  await writeFile(file, JSON.stringify({ rules: [rule] }));
  const { stdout } = await run(['admin', 'groups', 'plan', '-f', file]);
  assert.equal(stdout, planText);
  assert.deepEqual(taken(requests), [asked]);
  const identity = { issuer: 'https://login.example.org', groups: { claim: 'groups', rules: [rule] } };
  await writeFile(file, JSON.stringify({ identity, database: 'postgres://secret@db/andromeda' }));
  await run(['admin', 'groups', 'plan', '-f', file]);
  assert.deepEqual(taken(requests), [asked]);
  await writeFile(file, '{ rulez: [] }');
  const { status, stderr } = await run(['admin', 'groups', 'plan', '-f', file]);
  assert.equal(status, 2);
  assert.match(stderr, /has no list of rules/);
});
