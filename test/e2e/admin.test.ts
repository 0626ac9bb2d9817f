/** The operator's command line against the whole service: the walk of one who runs an installation. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { createMachine, type Result, sessionAt } from '../cli/harness.ts';
import { eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

type Cluster = NonNullable<Lab['clusters']>[number];
const job = { id: '17', user: 'bob', name: 'train', machines: ['alpha-1'] };
const [first, ...others] = physics.clusters ?? [];
const lab = {
  ...physics,
  clusters: [{ ...first, simulated: { ...first?.simulated, runningJobs: [job] } } as Cluster, ...others],
};
let app: TestApp;
before(async () => {
  app = await startTestApp({ lab });
});
after(() => app[Symbol.asyncDispose]());

/** The command line of somebody who is signed in, `root` unless said otherwise. */
async function operator(t: TestContext, name = 'root') {
  const machine = await createMachine(t);
  const accessToken = await app.issuer.token(name);
  await machine.writeProfile([sessionAt(app.businessUrl, { accessToken })]);
  const admin = (args: string) => {
    const parts = args.split(' ');
    return machine.run(parts[0] === 'members' ? parts : ['admin', ...parts]);
  };
  const ok = async (args: string) => {
    const { status, stdout, stderr } = await admin(args);
    assert.equal(status, 0, `${args}: ${stderr}`);
    return stdout;
  };
  return { ...machine, admin, ok };
}

function refused({ status, stdout, stderr }: Result, sentence: RegExp, expected = 1): void {
  assert.deepEqual([status, stdout], [expected, ''], stderr);
  assert.match(stderr, sentence);
  assert.equal(stderr.split('\n').length, 2, 'one line');
}

test('plan shows what apply does, once', async (t) => {
  const { ok, admin, directory } = await operator(t);
  const file = join(directory, 'lab.yaml');
  const text = `organizations:
  - slug: physics
    name: Physics
    members:
      - { email: ada@physics.example, role: owner }
      - { email: zoe@physics.example, role: member, username: zoe, permissions: [clusters.read] }
`;
  await writeFile(file, text);
  const planned = await ok(`plan -f ${file}`);
  assert.match(planned, /^ACTION +KIND +NAME +WHAT\n/);
  assert.match(planned, /\ncreate +person +zoe@physics\.example/);
  assert.match(planned, /\ncreate +member +physics\/zoe@physics\.example +.*zoe/);
  assert.equal(await ok(`apply -f ${file}`), planned);
  assert.equal(await ok(`apply -f ${file}`), 'Nothing to change.\n');
  const table = await ok('members list --org physics --permissions');
  assert.match(table, /\nzoe@physics\.example {2}member {2}zoe +clusters\.read +user_/);

  await writeFile(file, text.replace('role: owner', 'role: emperor'));
  refused(await admin(`apply -f ${file}`), /lab\.yaml:5: .*role/);
  await writeFile(file, 'organizations: [');
  refused(await admin(`plan -f ${file}`), /lab\.yaml:1:\d+: /);
});

test('plan says in words which accounts appear, what restarts, and whose jobs that ends', async (t) => {
  const { ok, directory } = await operator(t);
  const key = await app.write('/me/ssh-keys', { as: 'eve', body: { public_key: newPublicKey() } });
  assert.equal(key.status, 201);
  const file = join(directory, 'lab.yaml');
  const eve = '{ email: eve@physics.example, role: member, permissions: [clusters.ssh] }';
  await writeFile(file, `organizations: [{ slug: physics, name: Physics, members: [${eve}] }]`);
  await eventually(
    () => ok(`plan -f ${file}`),
    (planned) =>
      planned ===
      `ACTION  KIND    NAME                         WHAT
update  member  physics/eve@physics.example  permissions none → clusters.ssh

On cluster alpha:
  New login accounts: eve.
  Restarts, in this order: login nodes, then Slurm controller, then accounting service, then compute nodes one at a time.
  Running jobs that end:
    JOB  USER  NAME   MACHINES
    17   bob   train  alpha-1
`,
  );
});

test('the audit trail says who did what, when and why, and verifies', async (t) => {
  const { ok, admin, run } = await operator(t);
  const why = 'für Zoë – new';
  const args = ['admin', 'person', 'add', 'yan@physics.example', '--reason', why];
  assert.equal((await run(args)).status, 0);
  await ok('members add yan@physics.example --org physics');
  refused(await admin('person add yan@physics.example'), /yan@physics\.example/, 6);

  const lines = (text: string) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const trail = lines(await ok('audit --person yan@physics.example --since 1h'));
  assert.deepEqual(
    trail.map(({ operation, reason, actor_email: actor, result }) => [operation, reason, actor, result]),
    [
      ['operatorCreatePerson', why, 'root@physics.example', 'done'],
      ['addMember', 'andromeda members add', 'root@physics.example', 'done'],
    ],
  );
  const whole = lines(await ok('audit'));
  assert.deepEqual(
    whole.map(({ seq }) => seq),
    whole.map((_, index) => index + 1),
  );
  assert.equal(whole.at(-1).result, 'refused: invalid_state');
  assert.equal((await admin('audit --from 2099-01-01')).stdout, '');

  const verified = await ok('audit verify');
  const [, entries, head] = /^entries (\d+)\nhead (\d+:sha256:[0-9a-f]{64})\n$/.exec(verified) ?? [];
  assert.equal(Number(entries), whole.length, verified);
  await ok('cluster release beta --yes');
  assert.equal(await ok(`audit verify --head ${head}`).then((text) => text.startsWith('entries ')), true);
  refused(await admin(`audit verify --head 9999:sha256:${'0'.repeat(64)}`), /The trail was cut/);
});

test('a person who is no operator gets one line that says so', async (t) => {
  const { admin } = await operator(t, 'bob');
  for (const args of ['export', 'cluster list', 'audit', 'organization list'])
    refused(await admin(args), /staff/, 4);
});
