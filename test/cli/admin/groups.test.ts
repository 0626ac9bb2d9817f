/** Groups at the issuer: `admin groups list` and `plan`. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { signedIn, taken } from '../small-api.ts';

const rule = { group: 'physics-gpu', organization: 'physics', permissions: ['clusters.ssh'] };
const groups = {
  claim: 'groups',
  people: { known: 15, unknown: 2 },
  groups: [
    { group: 'physics-gpu', people: 12, rules: [{ ...rule, role: 'member' }] },
    { group: 'staff', people: 15, rules: [] },
  ],
};
const plan = {
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
  const { run, requests, directory } = await signedIn(t, { 'POST /operator/groups/plan': plan });
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
