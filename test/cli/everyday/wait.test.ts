/** `wait`, until something is in place everywhere; and what all everyday commands have in common: statuses, sessions. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Applied, lackOfCluster, lackOfKeys, lackOfPermission } from '../../../src/cli/everyday/wait.ts';
import { CliError, contractStatus, exitStatus, type Failed, outcomeOf } from '../../../src/cli/exit.ts';
import { kubeconfig } from '../../../src/domain/kubernetes/kubeconfig.ts';
import { newSecurityKey } from '../../support/security-keys.ts';
import { keygen } from '../../support/ssh-keys.ts';
import { alphaId } from '../admin/operator-api.ts';
import { createMachine, json, type Seen, says } from '../harness.ts';
import { changesTaken, refuse, refuses, signedIn, taken } from '../small-api.ts';
import {
  access,
  accessRoute,
  alpha,
  gammaId,
  inPhysics,
  keySet,
  lookups,
  me,
  options,
  platformCluster,
  uses,
} from './apis.ts';

const keyLookups = { ...lookups, 'GET /me/ssh-keys': keySet };

/** Answers with one thing after another, the last one for good. */
function oneAfterTheOther(...bodies: unknown[]) {
  return () => (bodies.length > 1 ? bodies.shift() : bodies[0]);
}

test('a key or shell change is in place when observation_current, ssh_key_set_generation and shell say so', () => {
  const wanted = { generation: 2, shell: '/bin/bash' };
  const rows: [object, string | undefined][] = [
    [{}, undefined],
    [{ ready: false, reason: 'no_keys' }, undefined],
    [{ observation_current: false }, 'it has not reported the newest list'],
    [{ ssh_key_set_generation: 1 }, 'it has version 1 of your keys, not 2'],
    [{ ssh_key_set_generation: 1, manifest_generation: 2 }, 'it has version 1 of your keys, not 2'],
    [{ shell: '' }, 'it has not set your login shell'],
  ];
  for (const [change, lack] of rows) assert.equal(lackOfKeys({ ...access, ...change }, wanted), lack);
});

test('a permission is in place when the list that the cluster applied says so', () => {
  const held = (...permissions: string[]) => ({ user_id: 'u', role: 'member' as const, permissions });
  const list = (state: Applied['state'], mode?: 'use' | 'admin'): Applied => ({
    state,
    users: [{ user_id: 'other', access_mode: 'use' }, ...(mode ? [{ user_id: 'u', access_mode: mode }] : [])],
  });
  const anew = 'its access list is being rebuilt';
  const rows: [
    Parameters<typeof lackOfPermission>[0],
    Parameters<typeof lackOfPermission>[1],
    string | undefined,
  ][] = [
    [list('converged', 'use'), held('clusters.ssh'), undefined],
    [list('converged', 'admin'), held('clusters.configure'), undefined],
    [list('converged', 'admin'), { ...held('organization.owner'), role: 'owner' }, undefined],
    [list('converged'), held('clusters.read'), undefined],
    [undefined, held(), undefined],
    [undefined, held('clusters.ssh'), anew],
    [list('converged'), held('clusters.ssh'), anew],
    [list('converged', 'use'), held(), anew],
    [list('converged', 'use'), held('clusters.ssh.admin'), anew],
    [list('accepted', 'use'), held('clusters.ssh'), 'its access list is accepted'],
    [list('failed'), held(), 'its access list is failed'],
    [
      { ...list('accepted'), waiting_hosts: [{ host: 'a1', since: '2030-01-01T00:00:00Z', message: '' }] },
      held(),
      'its access list is accepted, without a1 (since 2030-01-01T00:00:00Z)',
    ],
  ];
  for (const [found, member, lack] of rows) assert.equal(lackOfPermission(found, member), lack);
});

test('a cluster is in place when it is active and its scheduler ready', () => {
  const condition = { type: 'SUNKReady', status: 'True', observedGeneration: 1 } as const;
  const ready = { ...options, scheduler: { ...options.scheduler, ready: condition } };
  assert.equal(lackOfCluster('active', ready), undefined);
  assert.equal(lackOfCluster('provisioning', ready), 'it is provisioning');
  assert.equal(lackOfCluster('active', { ...ready, state: 'unknown' }), 'it has not reported');
  assert.equal(lackOfCluster('active', options), 'scheduler ready: no, NodesDown: node-2 is down');
  const { ready: _none, ...scheduler } = ready.scheduler;
  assert.equal(
    lackOfCluster('active', { ...ready, scheduler }),
    'it has not said whether its scheduler is ready',
  );
});

test('wait key asks until it is in place, and is quiet in a pipe', async (t) => {
  const behind = { ...access, ssh_key_set_generation: 1 };
  const { run, requests } = await signedIn(t, {
    ...keyLookups,
    [accessRoute]: oneAfterTheOther(behind, behind, behind, access),
  });
  await says(run(['wait', 'key']), 0, '', '');
  const asked = taken(requests);
  assert.equal(asked.filter((line) => line === accessRoute).length, 4);
  assert.ok(!asked.some((line) => line.includes('9d6f1f0e')), 'a cluster without Slurm is not asked');
  const told = JSON.parse((await run(['wait', 'key', '--cluster', 'alpha', '-o', 'json'])).stdout);
  assert.deepEqual(told, { clusters: [{ id: alphaId, name: 'alpha', ssh_access: access }] });
});

test('wait key asks about clusters that the person may use and not list as well', async (t) => {
  const forbidden = (_seen: unknown, response: ServerResponse) => refuse(response, 403, 'No.');
  const listing = Object.keys(keyLookups).filter((route) =>
    /^GET \/(organizations\/org_1\/)?clusters(\?|$)/.test(route),
  );
  const { run } = await signedIn(t, {
    ...keyLookups,
    ...Object.fromEntries(listing.map((route) => [route, forbidden])),
    'GET /me/access': uses(),
    [accessRoute]: access,
  });
  const told = JSON.parse((await run(['wait', 'key', '-o', 'json'])).stdout);
  assert.deepEqual(told, { clusters: [{ id: alphaId, name: 'alpha', ssh_access: access }] });
});

test('wait says what is missing when the time is over, and exits 1', async (t) => {
  const { run } = await signedIn(t, {
    ...keyLookups,
    [accessRoute]: { ...access, shell: '/bin/zsh' },
  });
  const left = 'It is not in place yet: alpha: it has not set your login shell.\n';
  await says(run(['wait', 'key', '--timeout', '1s']), 1, left, '');
  const wrong = "'long' is not a time span for --timeout; write 30m, 2h or 7d.\n";
  await says(run(['wait', 'key', '--timeout', 'long']), 2, wrong);
});

test('a service that fails for a moment is waited for, a refusal is not', async (t) => {
  let answers = 0;
  const { run } = await signedIn(t, {
    ...keyLookups,
    [accessRoute]: (_seen: unknown, response: ServerResponse) => {
      answers++;
      if (answers === 2) return json(response, 503, { code: 'x', message: 'Later.', retryable: true });
      return answers > 3 ? refuse(response, 403, 'Not any more.') : json(response, 200, access);
    },
  });
  assert.equal((await run(['wait', 'key'])).status, 0);
  assert.equal(answers, 3);
  await says(run(['wait', 'key', '--cluster', 'alpha']), 4, 'Not any more.\n');
});

test('wait permission waits for Kubernetes as well', async (t) => {
  const path = 'GET /organizations/org_1/members/user_bob/kubernetes-access';
  const gamma = { cluster_id: alphaId, cluster_name: 'gamma' };
  const { run, requests } = await signedIn(t, {
    ...lookups,
    'GET /organizations/org_1/members/user_bob/permissions': {
      user_id: 'user_bob',
      role: 'member',
      permissions: [],
    },
    [`GET /organizations/org_1/clusters/${alphaId}/access`]: {
      cluster_id: alphaId,
      state: 'converged',
      users: [],
    },
    [path]: oneAfterTheOther(
      { clusters: [{ ...gamma, state: 'pending' }] },
      { clusters: [{ ...gamma, state: 'failed', message: 'No right.' }] },
      { clusters: [{ ...gamma, state: 'applied' }] },
    ),
  });
  await says(run(['wait', 'permission', 'bob@physics.example']), 0, '');
  assert.equal(taken(requests).filter((line) => line === path).length, 3);
});

test('wait permission follows the access list of every Slurm cluster, also when the permission went', async (t) => {
  const list = {
    cluster_id: alphaId,
    state: 'converged',
    users: [{ user_id: 'user_bob', access_mode: 'use' }],
  };
  const accessOfAlpha = `GET /organizations/org_1/clusters/${alphaId}/access`;
  const { run, requests } = await signedIn(t, {
    ...lookups,
    'GET /organizations/org_1/members/user_bob/kubernetes-access': { clusters: [] },
    'GET /organizations/org_1/members/user_bob/permissions': oneAfterTheOther(
      { user_id: 'user_bob', role: 'member', permissions: ['clusters.ssh'] },
      { user_id: 'user_bob', role: 'member', permissions: ['clusters.ssh'] },
      { user_id: 'user_bob', role: 'member', permissions: [] },
    ),
    [accessOfAlpha]: oneAfterTheOther(
      { ...list, users: [] },
      list,
      list,
      { ...list, state: 'accepted', users: [] },
      { ...list, users: [] },
    ),
  });
  const bob = ['wait', 'permission', 'bob@physics.example'];
  for (const looks of [2, 3]) {
    await says(run(bob), 0, '', '');
    assert.equal(taken(requests).filter((line) => line === accessOfAlpha).length, looks);
  }
  await says(
    run(['wait', 'permission', 'zoe@physics.example']),
    5,
    "There is no member of physics 'zoe@physics.example'; there are: ada@physics.example, bob@physics.example.\n",
  );
});

test('wait cluster ends when the cluster is of use, and at once when it goes out of service', async (t) => {
  const ready = { ...options, scheduler: { ...options.scheduler, ready: { status: 'True' } } };
  const cluster = `GET /clusters/${alphaId}?${inPhysics}`;
  const routes = {
    ...lookups,
    [`GET /clusters/${alphaId}/options?${inPhysics}`]: oneAfterTheOther(options, ready),
  };
  const coming = await signedIn(t, {
    ...routes,
    [cluster]: oneAfterTheOther(platformCluster(alphaId, 'alpha', 'provisioning'), alpha),
  });
  const { status, stdout } = await coming.run(['wait', 'cluster', 'alpha', '-o', 'json']);
  assert.equal(status, 0);
  assert.deepEqual(JSON.parse(stdout), { cluster: alpha, options: ready });
  const going = await signedIn(t, { ...routes, [cluster]: platformCluster(alphaId, 'alpha', 'releasing') });
  await says(going.run(['wait', 'cluster', 'alpha']), 1, 'alpha is releasing; it will not come back.\n');
});

test('on a terminal, one line says what is being waited for, goes away, and Ctrl-C ends it with 130', async (t) => {
  let body: object = { ...access, observation_current: false };
  const { atTerminal } = await signedIn(t, {
    ...keyLookups,
    'GET /me': me,
    [accessRoute]: () => body,
  });
  const first = atTerminal(['wait', 'key']);
  await first.until('Waiting: alpha: it has not reported the newest list');
  body = access;
  const { status, screen } = await first.result;
  assert.equal(status, 0);
  assert.ok(screen.endsWith('\r\u001b[KIn place on alpha.\n'), JSON.stringify(screen));
  assert.ok(!screen.includes('\u001b[3'), 'no colour');

  body = { ...access, observation_current: false };
  const second = atTerminal(['wait', 'key']);
  await second.until('Waiting: ');
  second.type('\u0003');
  const cancelled = await second.result;
  assert.equal(cancelled.status, 130);
  assert.match(cancelled.screen, /Cancelled; the changes go on without anyone waiting\.\n$/);
});

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
    assert.deepEqual(changesTaken(requests), []);
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
