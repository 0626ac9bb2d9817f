/** What all everyday commands have in common: help, wrong command lines, statuses, sessions. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { CliError, contractStatus, exitStatus, type Failed, outcomeOf } from '../../../src/cli/exit.ts';
import { kubeconfig } from '../../../src/domain/kubernetes/kubeconfig.ts';
import { newSecurityKey } from '../../support/security-keys.ts';
import { keygen } from '../../support/ssh-keys.ts';
import { createMachine, json, type Seen, says } from '../harness.ts';
import { refuses, signedIn, taken } from '../small-api.ts';
import { gammaId, inPhysics, keySet, lookups, me } from './apis.ts';

test('a wrong command line is one sentence and status 2, and nothing is changed', async (t) => {
  const { run, requests } = await signedIn(t, {
    ...lookups,
    'GET /organizations/org_1/members/user_bob/permissions': {
      user_id: 'user_bob',
      role: 'member',
      permissions: [],
    },
    'GET /permission-profiles': { profiles: [{ name: 'Engineer', permissions: [] }] },
  });
  const rows: [string, string][] = [
    ['keys revok', "Unknown command 'revok'; did you mean revoke?"],
    ['machines', "Missing required argument 'cluster'; see `andromeda --help`."],
    ['members grant bob@physics.example', "Missing required argument 'keys'; see `andromeda --help`."],
    [
      'members grant bob@physics.example Boss',
      "'Boss' is neither a permission, such as clusters.ssh, nor a profile: Engineer.",
    ],
    [
      'storage -o xml',
      "Option '-o, --output <format>' argument 'xml' is invalid: allowed choices are table, json, yaml; see `andromeda --help`.",
    ],
    ['shell set /bin/sh --reason ', '--reason takes one line of 1 to 500 characters.'],
    ['completion', "Missing required argument 'shell'; see `andromeda --help`."],
    ['completion tcsh', "'tcsh' is not a shell that this completes for; take bash, zsh or fish."],
  ];
  for (const [args, sentence] of rows) {
    await says(run(args.split(' ')), 2, `${sentence}\n`, '');
    assert.deepEqual(
      taken(requests).filter((line) => !line.startsWith('GET ')),
      [],
    );
  }
});

test('each way to fail has a status of its own, but not for call and auth', async (t) => {
  const statuses: [number, number][] = [
    [400, 1],
    [401, 3],
    [403, 4],
    [404, 5],
    [409, 6],
    [422, 1],
    [500, 1],
    [503, 7],
  ];
  for (const [http, status] of statuses) assert.equal(exitStatus[outcomeOf(http, true)], status, `${http}`);
  assert.equal(outcomeOf(503, false), 'failure');
  for (const outcome of Object.keys(exitStatus).filter((one) => one !== 'ok') as Failed[]) {
    const plain = await contractStatus(async () => {
      throw new CliError(outcome, 'x');
    }).catch((error: CliError) => exitStatus[error.outcome]);
    assert.equal(plain, ['usage', 'interrupted'].includes(outcome) ? exitStatus[outcome] : 1, outcome);
  }
  const { run } = await signedIn(t, {
    'GET /me': refuses(403, 'No.'),
  });
  assert.equal((await run(['clusters', 'list'])).status, 4);
  assert.equal((await run(['call', 'business', 'GET', '/me'])).status, 1);
});

test('no one signed in, or a session that has ended, is status 3', async (t) => {
  const { run } = await createMachine(t);
  for (const args of [
    ['clusters', 'list'],
    ['wait', 'key'],
    ['ssh', 'alpha'],
  ]) {
    const sentence = 'You are not signed in; run `andromeda auth login --url <platform_url>`.\n';
    await says(run(args), 3, sentence);
  }
  assert.equal((await run(['auth', 'status'])).status, 1);
});

test('who belongs to several organizations chooses, where one is needed', async (t) => {
  const { run, requests } = await signedIn(t, {
    ...lookups,
    'GET /me': { ...me, default_org_id: undefined, memberships: [{ org_id: 'org_1' }, { org_id: 'org_2' }] },
    'GET /organizations/org_2': { id: 'org_2', slug: 'chemistry' },
    'GET /organizations/org_2/members': { members: [] },
    'GET /organizations/org_2/clusters': { clusters: [] },
    'GET /clusters?businessOrgId=org_2&limit=200': refuses(403, 'No.'),
  });
  const sentence = 'You belong to several organizations: chemistry, physics. Choose one with --org.\n';
  await says(run(['members', 'list']), 2, sentence);
  for (const org of ['chemistry', 'org_2'])
    assert.equal((await run(['members', 'list', '--org', org])).stderr, 'There are no members.\n');
  taken(requests);
  const all = await run(['clusters', 'list']);
  assert.match(all.stdout, /^NAME .*\nalpha .* physics .*\ngamma .* physics .*\n$/);
  assert.equal(all.stderr, 'You may not list the clusters of chemistry, which takes clusters.read.\n');
});

test('who belongs to none names the one that shares a cluster with them', async (t) => {
  const { run } = await signedIn(t, {
    'GET /me': { ...me, memberships: [], default_org_id: undefined },
    'GET /me/access': { clusters: [] },
    [`GET /clusters?${inPhysics}&limit=200`]: lookups[`GET /clusters?${inPhysics}&limit=200`],
    [`GET /clusters/${gammaId}/kubeconfig?organizationId=org_1`]: (seen: Seen) => ({
      kubeconfig: JSON.stringify(
        kubeconfig({
          clusterId: gammaId,
          server: 'https://gamma.example',
          issuer: `http://${seen.headers.host}`,
          clientId: 'k',
          usernameClaim: 'sub',
        }),
      ),
    }),
  });
  await says(
    run(['kubeconfig', 'gamma']),
    5,
    'You belong to no organization; one that shares a cluster with you is named with --org and its ID.\n',
  );
  const { status, stdout } = await run(['kubeconfig', 'gamma', '--org', 'org_1']);
  assert.equal(status, 0);
  assert.match(stdout, /^kind: "Config"$/m);
});

test('whether a key in a security key is taken, the service says', async (t) => {
  const sentence = 'Only Ed25519 keys are accepted, not sk-ssh-ed25519@openssh.com.';
  const { run, requests, directory } = await signedIn(t, {
    'GET /me/ssh-keys/plan': { changes: [], clusters: [] },
    'POST /me/ssh-keys': (_: Seen, response: ServerResponse) =>
      json(response, 400, { code: 'invalid_request', error: sentence }),
  });
  const file = join(directory, 'key');
  const { publicKey } = newSecurityKey('ssh:lab');
  await writeFile(file, `${publicKey} ada's key\n`);
  await says(run(['keys', 'add', file]), 1, `${file}: ${sentence}\n`);
  assert.deepEqual(JSON.parse(`${requests[1]?.body}`), { public_key: `${publicKey} ada's key` });
});

test('what is no Ed25519 public key is refused before anything is sent', async (t) => {
  const { run, requests, directory } = await signedIn(t, { 'GET /me/ssh-keys': keySet });
  const file = join(directory, 'key');
  const rows: [string, RegExp][] = [
    ['', /^The public key is empty\.\n$/],
    [keygen('-t', 'ed25519').privateKey, /^That is a private key\. Keep it secret/],
    [keygen('-t', 'ecdsa').publicKey, /^Only Ed25519 keys are accepted, not ecdsa/],
  ];
  for (const [text, sentence] of rows) {
    await writeFile(file, text);
    const { status, stderr } = await run(['keys', 'add', file]);
    assert.equal(status, 1);
    assert.match(stderr, sentence);
  }
  const missing = await run(['keys', 'add']);
  assert.match(missing.stderr, /\.ssh\/id_ed25519\.pub cannot be read: there is no such file\.\n$/);
  const endless = await run(['keys', 'add', '/dev/zero']);
  assert.equal(endless.stderr, '/dev/zero cannot be read: it is larger than 16 MiB.\n');
  assert.equal(requests.length, 0);
  const sentence = "There is no key of yours 'SHA256:none'; there are: SHA256:new, SHA256:old.\n";
  await says(run(['keys', 'revoke', 'SHA256:none']), 5, sentence);
});

test('a member who is owner or admin holds every permission already', async (t) => {
  const { run } = await signedIn(t, {
    ...lookups,
    'GET /organizations/org_1/members/user_ada/permissions': {
      user_id: 'user_ada',
      role: 'owner',
      permissions: ['organization.owner'],
    },
  });
  const { status, stderr } = await run(['members', 'grant', 'ada@physics.example', 'clusters.ssh']);
  assert.deepEqual([status, stderr], [6, 'ada@physics.example is owner, which includes every permission.\n']);
});
