/** `andromeda ssh` and `ssh-config`: what ssh is called with, and what is said when it cannot be. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../support/app.ts';
import { newSecurityKey } from '../../support/security-keys.ts';
import { keygen, keygenFingerprint } from '../../support/ssh-keys.ts';
import { alphaId } from '../admin/operator-api.ts';
import { json, says } from '../harness.ts';
import { type Routes, refuses, signedIn, taken } from '../small-api.ts';
import {
  access,
  accessRoute,
  alpha,
  gammaId,
  inPhysics,
  keySet,
  lookups,
  platformCluster,
  uses,
} from './apis.ts';

/** The program with an ssh that prints its arguments, one a line, and exits as it is told. */
async function withSsh(t: TestContext, routes: Routes = {}, exits = 'exit 3') {
  const machine = await signedIn(t, {
    ...lookups,
    'GET /me/access': { clusters: [] },
    [accessRoute]: access,
    ...routes,
  });
  const home = dirname(machine.directory);
  const bin = join(home, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'ssh'), `#!/bin/sh\nfor one; do echo "$one"; done\n${exits}\n`);
  await chmod(join(bin, 'ssh'), 0o755);
  const env = { PATH: `${bin}:${process.env.PATH}` };
  const run = (...args: string[]) => machine.run(args, { env });
  return { ...machine, run, home, env, knownHosts: join(machine.directory, 'known_hosts') };
}

const flags = (knownHosts: string) => [
  ...['-o', 'HostName=gateway.example', '-o', 'Port=2222', '-o', `User=${alphaId}.ada`],
  ...['-o', `HostKeyAlias=${alphaId}`, '-o', `UserKnownHostsFile="${knownHosts}"`],
  ...['-o', 'StrictHostKeyChecking=yes'],
];

test("ssh runs the system's ssh with the person's arguments, and ends with its exit status", async (t) => {
  const { run, knownHosts } = await withSsh(t);
  const rest = ['-L', '8888:localhost:8888', '-t', 'squeue --me', '-v'];
  for (const wanted of ['alpha', alphaId, alphaId.slice(0, 9)]) {
    const { status, stdout, stderr } = await run('ssh', '--org', 'physics', wanted, ...rest);
    assert.deepEqual([status, stderr], [3, '']);
    assert.deepEqual(stdout.split('\n').slice(0, -1), [...flags(knownHosts), 'andromeda-alpha', ...rest]);
  }
});

test('--job leads into the running job, or into the one whose ID follows', async (t) => {
  const { run } = await withSsh(t);
  for (const [given, suffix, rest] of [
    [['--job'], '+job', []],
    [['--job', '-L', '8888:localhost:8888'], '+job', ['-L', '8888:localhost:8888']],
    [['--job', '4711_3', 'nvidia-smi'], '+4711_3', ['nvidia-smi']],
    [['--job=4711.a1'], '+4711.a1', []],
    [['hostname', '--job'], '', ['hostname', '--job']],
  ] as const) {
    const { stdout } = await run('ssh', 'alpha', ...given);
    assert.match(stdout, new RegExp(`^User=${alphaId}\\.ada${suffix.replace('+', '\\+')}$`, 'm'));
    assert.equal(stdout.split('andromeda-alpha\n')[1], rest.map((one) => `${one}\n`).join(''));
  }
});

test('the host key stands in a file of our own, under the ID of its cluster, and a new one replaces it', async (t) => {
  const other = `${gammaId} ssh-ed25519 AAAAother`;
  let hostKey = access.host_key;
  const { run, knownHosts, home } = await withSsh(t, {
    [accessRoute]: () => ({ ...access, host_key: hostKey }),
  });
  await run('ssh', 'alpha');
  assert.equal(await readFile(knownHosts, 'utf8'), `${alphaId} ${hostKey}\n`);
  assert.equal((await stat(knownHosts)).mode & 0o777, 0o600);
  await writeFile(knownHosts, `${other}\n${alphaId} ssh-ed25519 AAAAold\n`);
  hostKey = 'ssh-ed25519 AAAAnew';
  await run('ssh', 'alpha');
  assert.deepEqual((await readFile(knownHosts, 'utf8')).split('\n').sort(), [
    '',
    `${alphaId} ${hostKey}`,
    other,
  ]);
  await assert.rejects(stat(join(home, '.ssh')), 'nothing is written to ~/.ssh');
});

test('the private key that goes with what the cluster confirmed is named, also one in a security key', async (t) => {
  for (const [name, publicKey] of [
    ['cluster', keygen('-t', 'ed25519').publicKey],
    ['id_ed25519_sk', newSecurityKey().publicKey],
  ] as const) {
    const key_fingerprints = [keygenFingerprint(publicKey)];
    const { run, home } = await withSsh(t, { [accessRoute]: { ...access, key_fingerprints } });
    const file = join(home, '.ssh', name);
    await mkdir(join(home, '.ssh'));
    await writeFile(`${file}.pub`, publicKey);
    assert.doesNotMatch((await run('ssh', 'alpha')).stdout, /IdentityFile/);
    await writeFile(file, 'the key', { mode: 0o600 });
    assert.match((await run('ssh', 'alpha')).stdout, new RegExp(`\nIdentityFile="${file}"\n`));
  }
});

test('a fault that lasts is said at once, and a cluster that may be used and not listed is found by its name', async (t) => {
  const message = 'A fault on alpha keeps your account from being applied. Your administrator has been told.';
  const ssh = { state: 'failed', reason: 'fault', granted: true, next: 'operator', message } as const;
  const { run } = await withSsh(t, {
    'GET /me/access': uses({ ssh }),
    [`GET /clusters?${inPhysics}&limit=200`]: refuses(403, 'This needs clusters.read.'),
    [accessRoute]: { ...access, ready: false, reason: 'projection_pending' },
  });
  await says(run('ssh', 'alpha'), 1, `${message}\n`);
});

test('a key that lapsed is said in the words of the service; for a sign-in the gateway waits', async (t) => {
  const lapsed = 'This key has lapsed. Register another one.';
  const key = { ...access, ready: false, reason: 'no_keys', lapsed };
  const { run } = await withSsh(t, { [accessRoute]: key });
  await says(run('ssh', 'alpha'), 1, `alpha: ${lapsed}\n`);
  const signIn = { ...access, ready: false, reason: 'access_not_projected', lapsed: 'Sign in.' };
  const waiting = await withSsh(t, { [accessRoute]: signIn });
  assert.match((await waiting.run('ssh', 'alpha')).stdout, /andromeda-alpha/);
});

test('what is missing is one sentence that says what to do, and status 1', async (t) => {
  const wait = '`andromeda wait key --cluster alpha` ends when it has';
  const rows: [string, string][] = [
    ['no_keys', 'You have no SSH key registered; `andromeda keys add` registers one.'],
    ['access_not_projected', `alpha has not been told of you yet; ${wait} your key.`],
    ['projection_pending', `alpha has not applied the latest changes yet; ${wait}.`],
    [
      'gateway_unavailable',
      'alpha does not answer over SSH: it may be restarting, or have no Slurm; try again, or ask its operator.',
    ],
    [
      'observation_stale',
      'alpha has not reported for minutes, and nobody is let in until it does; its operator has to look.',
    ],
    ['cluster_inactive', 'alpha is not in service; `andromeda clusters show alpha` says more.'],
    [
      'named_user_required',
      'You have no username in the organization of alpha; an owner or admin of it has to give you one.',
    ],
    ['something_new', 'alpha does not let you in yet: something_new.'],
  ];
  let reason = '';
  const { run } = await withSsh(t, {
    [accessRoute]: () => ({ ...access, ready: false, reason }),
  });
  for (const [next, sentence] of rows) {
    reason = next;
    await says(run('ssh', 'alpha'), 1, `${sentence}\n`, '');
  }
});

test('refusals have a status of their own: forbidden 4, not found 5, usage 2', async (t) => {
  const { run } = await withSsh(t, {
    [accessRoute]: refuses(403, 'This needs the permission clusters.ssh in the organization.'),
  });
  const rows: [string, number, string][] = [
    ['ssh alpha', 4, 'This needs the permission clusters.ssh in the organization.'],
    ['ssh delta', 5, "There is no cluster 'delta'; there are: alpha, gamma."],
    ['ssh --org chemistry alpha', 5, "There is no organization of yours 'chemistry'; there are: physics."],
    ['ssh', 2, "Missing required argument 'cluster'; see `andromeda --help`."],
    [
      'ssh --profile other alpha',
      3,
      'You are not signed in; run `andromeda auth login --profile other --url <platform_url>`.',
    ],
  ];
  for (const [args, expected, sentence] of rows) {
    await says(run(...args.split(' ')), expected, `${sentence}\n`, '');
  }
});

test('nothing that the API says can become a flag of ssh', async (t) => {
  let bad: object = {};
  const { run, knownHosts, home } = await withSsh(t, {
    [accessRoute.replace(alphaId, gammaId)]: noSlurm,
    [accessRoute]: () => ({ ...access, ...bad }),
  });
  const rows: [string, object[]][] = [
    [
      'an address',
      [{ hostname: '-oProxyCommand=x' }, { hostname: 'a\nProxyCommand x' }, { hostname: ['a'] }],
    ],
    [
      'a port',
      [
        { port: '22\n    ProxyCommand touch /tmp/owned' },
        { port: '2222' },
        { port: 0 },
        { port: 65_536 },
        { port: 22.5 },
        { port: null },
      ],
    ],
    ['a user name', [{ username: 'a b' }, { username: 'a\nProxyCommand x' }, { username: ['ada'] }]],
    ['a host key', [{ host_key: 'ssh-ed25519 AA\nx' }, { host_key: '@cert-authority * ssh-ed25519 AA' }]],
  ];
  for (const [what, values] of rows) {
    for (bad of values) {
      for (const args of [
        ['ssh', 'alpha'],
        ['ssh-config', '--write'],
      ]) {
        const { status, stdout, stderr } = await run(...args);
        const sentence = `The Platform API gave ${what} that ssh cannot be given.\n`;
        assert.deepEqual([status, stdout, stderr], [1, '', sentence], JSON.stringify(bad));
      }
    }
  }
  for (const written of [knownHosts, join(home, '.ssh/andromeda.conf')])
    await assert.rejects(readFile(written), { code: 'ENOENT' });
});

test('code: the address for VS Code on a cluster, in the newest job, and in one by its ID', async (t) => {
  const { run } = await withSsh(t, { [accessRoute]: access });
  const urlOf = async (...args: string[]) => {
    const { status, stdout, stderr } = await run('code', 'alpha', ...args);
    assert.equal(status, 0, stderr);
    return stdout.trim();
  };
  assert.equal(await urlOf(), 'vscode://vscode-remote/ssh-remote+andromeda-alpha/');
  assert.equal(await urlOf('--job'), 'vscode://vscode-remote/ssh-remote+andromeda-alpha-job/');
  const [, hex = ''] = /ssh-remote\+([0-9a-f]+)\/$/.exec(await urlOf('--job', '4711_3')) ?? [];
  assert.deepEqual(JSON.parse(Buffer.from(hex, 'hex').toString()), {
    hostName: 'andromeda-alpha',
    user: `${alphaId}.${access.username}+4711_3`,
  });
  const refused = await run('code', 'alpha', '--job', 'x;y');
  assert.deepEqual([refused.status, refused.stdout], [2, '']);
  assert.match(refused.stderr, /'x;y' is not the ID of a job/);
});

test('neither the ID of a cluster nor the name of an organization reaches ssh unchecked', async (t) => {
  const evil = 'x\n    ProxyCommand touch owned';
  const withId = await withSsh(t, {
    'GET /clusters?businessOrgId=org_1&limit=200': { items: [platformCluster(evil, 'alpha')] },
    [`GET /clusters/${encodeURIComponent(evil)}/ssh-access?organizationId=org_1`]: access,
  });
  const { status, stderr } = await withId.run('ssh-config', '--write');
  assert.deepEqual([status, stderr], [1, "The Platform API gave a cluster's ID that ssh cannot be given.\n"]);
  const withSlug = await withSsh(t, {
    'GET /organizations/org_1': { id: 'org_1', slug: evil },
    [accessRoute.replace(alphaId, gammaId)]: noSlurm,
  });
  const said = (await withSlug.run('ssh-config', '--write')).stderr;
  assert.equal(said, "The Platform API gave an organization's name that ssh cannot be given.\n");
  for (const { home } of [withId, withSlug])
    await assert.rejects(readFile(join(home, '.ssh/andromeda.conf')), { code: 'ENOENT' });
});

test('a machine without ssh gets a sentence', async (t) => {
  const { run, directory } = await signedIn(t, { ...lookups, [accessRoute]: access });
  // The program's own start needs these.
  for (const tool of ['sh', 'readlink', 'dirname'])
    await symlink(execFileSync('which', [tool], { encoding: 'utf8' }).trim(), join(directory, tool));
  const { status, stderr } = await run(['ssh', 'alpha'], { env: { PATH: directory } });
  assert.deepEqual([status, stderr], [1, 'There is no ssh on this machine; install the OpenSSH client.\n']);
});

test('someone who may not list clusters names one by its whole ID', async (t) => {
  const { run, requests, knownHosts } = await withSsh(t, {
    [`GET /clusters?businessOrgId=org_1&limit=200`]: refuses(403, 'No.'),
    'GET /organizations/org_1/clusters': { clusters: [] },
  });
  await says(
    run('ssh', 'alpha'),
    4,
    'You may not list the clusters of physics, which takes clusters.read; name this one by its whole ID.\n',
  );
  taken(requests);
  const { stdout } = await run('ssh', alphaId);
  assert.deepEqual(stdout.split('\n').slice(0, -1), [...flags(knownHosts), `andromeda-${alphaId}`]);
});

test('a name in two organizations is refused until one of them is named; ssh-config names both', async (t) => {
  const otherId = `${'f'.repeat(8)}${alphaId.slice(8)}`;
  const { run } = await withSsh(t, {
    'GET /me': { ...(lookups['GET /me'] as object), memberships: [{ org_id: 'org_1' }, { org_id: 'org_2' }] },
    'GET /organizations/org_2': { id: 'org_2', slug: 'chemistry' },
    'GET /organizations/org_2/clusters': { clusters: [] },
    'GET /clusters?businessOrgId=org_1&limit=200': { items: [alpha] },
    'GET /clusters?businessOrgId=org_2&limit=200': {
      items: [platformCluster(otherId, 'alpha'), platformCluster(alphaId, 'old', 'released')],
    },
    [`GET /clusters/${otherId}/ssh-access?organizationId=org_2`]: access,
  });
  const both = `'alpha' fits several clusters: alpha (${otherId}), alpha (${alphaId}).\n`;
  await says(run('ssh', 'alpha'), 1, both);
  assert.equal((await run('ssh', '--org', 'physics', 'alpha')).status, 3);
  const { stdout } = await run('ssh-config');
  assert.deepEqual(stdout.match(/^Host .*/gm), [
    ...['Host andromeda-chemistry-alpha', 'Host andromeda-chemistry-alpha-job'],
    ...['Host andromeda-physics-alpha', 'Host andromeda-physics-alpha-job'],
  ]);
});

test('what ends the command ends ssh, and shows in the status', async (t) => {
  const { start, env, home } = await withSsh(t, {}, 'touch "$HOME/started"; exec sleep 30');
  const session = start(['ssh', 'alpha'], { env });
  await eventually(async () => existsSync(join(home, 'started')), Boolean);
  session.signal('SIGTERM');
  assert.equal((await session.result).status, 128 + 15);
});

/** What a first key, or revoking a last one, does. */
const keyPlan = {
  changes: [{ change: 'revoke_key', email: 'bob@physics.example', result: 'planned' }],
  clusters: [
    {
      cluster_id: alphaId,
      cluster_name: 'alpha',
      added: [],
      removed: ['bob'],
      waiting_for_key: [],
      restarts: ['login', 'compute'],
      ended_jobs: [],
      other_jobs: 3,
      ended_sessions: [],
      kubernetes: [],
    },
  ],
};
const planText =
  /On cluster alpha:\r?\n.*bob\.\r?\n.*Restarts, in .*\n {2}Running jobs that end, of other people: 3\./;

test('at a terminal, the last key is revoked when the person has read what it ends and agrees', async (t) => {
  const [revoked, active] = keySet.keys;
  const revoke = `POST /me/ssh-keys/${active?.id}/revoke`;
  const { atTerminal, requests } = await withSsh(t, {
    'GET /me/ssh-keys': keySet,
    [`GET /me/ssh-keys/plan?revoke=${active?.id}`]: keyPlan,
    [revoke]: { ssh_key: revoked, ssh_key_set: { generation: 3 }, command_id: 'c' },
  });
  for (const [typed, flags, status] of [
    ['n\r', [], 1],
    ['y\r', [], 0],
    ['', ['--yes'], 0],
  ] as const) {
    const command = atTerminal(['keys', 'revoke', 'SHA256:new', ...flags]);
    if (typed !== '') {
      await command.until('Go on? [y/N] ');
      command.type(typed);
    }
    const ended = await command.result;
    assert.equal(ended.status, status);
    assert.match(ended.screen, planText);
    assert.equal(taken(requests).includes(revoke), status === 0);
  }
});

test('at a terminal, a key is offered, registered when the person agrees, and waited for', async (t) => {
  const key = keygen('-t', 'ed25519');
  let registered = '';
  const { home, env, requests, directory, atTerminal } = await withSsh(
    t,
    {
      'GET /me/ssh-keys': { ...keySet, keys: [] },
      'GET /me/ssh-keys/plan': keyPlan,
      'POST /me/ssh-keys': (seen: { body: Buffer }, response: Parameters<typeof json>[0]) => {
        registered = seen.body.toString();
        json(response, 201, { ssh_key: keySet.keys[1], ssh_key_set: { generation: 1 }, command_id: 'c' });
      },
      [accessRoute]: (_seen: unknown, response: Parameters<typeof json>[0]) => {
        const polls = requests.filter(({ url }) => url.includes('ssh-access')).length;
        const reason = registered === '' ? 'no_keys' : polls < 4 ? 'projection_pending' : 'ready';
        json(response, 200, { ...access, ready: reason === 'ready', reason });
      },
    },
    'exit 5',
  );
  const none = atTerminal(['ssh', 'alpha'], env);
  assert.match(
    (await none.result).screen,
    /make one: `ssh-keygen -t ed25519 -f \S+`, and then `andromeda keys add \S+\.pub`\.\n$/,
  );

  await mkdir(join(home, '.ssh'));
  await writeFile(join(home, '.ssh/id_ed25519.pub'), key.publicKey);
  const declined = atTerminal(['ssh', 'alpha'], env);
  const screen = await declined.until('Register it? [y/N] ');
  assert.ok(screen.includes(`${home}/.ssh/id_ed25519.pub  ${keygenFingerprint(key.publicKey)}`), screen);
  assert.match(screen, planText);
  declined.type('n\r');
  assert.deepEqual((await declined.result).status, 1);
  assert.equal(registered, '');

  requests.splice(0);
  const agreed = atTerminal(['ssh', 'alpha'], env);
  await agreed.until('Register it? [y/N] ');
  agreed.type('y\r');
  await agreed.until('Waiting: alpha has not applied the latest changes yet');
  const ended = await agreed.result;
  assert.deepEqual(
    [ended.status, registered],
    [5, JSON.stringify({ public_key: key.publicKey.split(' ').slice(0, 2).join(' ') })],
  );
  assert.match(ended.screen, /andromeda-alpha\n$/);
  assert.ok(await stat(join(directory, 'known_hosts')));
});

const block = (knownHosts: string, name = 'alpha', suffix = '') => `Host andromeda-${name}
    HostName gateway.example
    Port 2222
    User ${alphaId}.ada${suffix}
    HostKeyAlias ${alphaId}
    UserKnownHostsFile "${knownHosts}"
    StrictHostKeyChecking yes
`;
const blocks = (knownHosts: string) => `${block(knownHosts)}\n${block(knownHosts, 'alpha-job', '+job')}`;
const heading = '# Written by `andromeda ssh-config`; a later run replaces it.\n\n';
const noSlurm = { ...access, hostname: '', host_key: '', ready: false, reason: 'gateway_unavailable' };

test('ssh-config prints a Host block for each cluster that one can log in to, which ssh understands', async (t) => {
  const { run, knownHosts, home } = await withSsh(t, {
    [accessRoute.replace(alphaId, gammaId)]: noSlurm,
  });
  const { status, stdout, stderr } = await run('ssh-config');
  assert.deepEqual([status, stderr, stdout], [0, '', heading + blocks(knownHosts)]);
  assert.equal(await readFile(knownHosts, 'utf8'), `${alphaId} ${access.host_key}\n`);
  const file = join(home, 'config');
  await writeFile(file, stdout);
  const understood = execFileSync('ssh', ['-F', file, '-G', 'andromeda-alpha'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  for (const line of [
    'hostname gateway.example',
    'port 2222',
    `user ${alphaId}.ada`,
    `hostkeyalias ${alphaId}`,
    `userknownhostsfile ${knownHosts}`,
  ])
    assert.ok(understood.includes(`${line}\n`), understood);
  assert.equal((await run('ssh-config', 'gamma')).stderr, 'There is no cluster that you may log in to.\n');
  const { hosts } = JSON.parse((await run('ssh-config', 'alpha', '-o', 'json')).stdout);
  assert.deepEqual(hosts, [{ host: 'andromeda-alpha', cluster_id: alphaId, ...access }]);
});

test('ssh-config --write puts a file in place, and says how to include it until it is', async (t) => {
  const { run, home, knownHosts } = await withSsh(t, { [accessRoute.replace(alphaId, gammaId)]: noSlurm });
  const file = join(home, '.ssh/andromeda.conf');
  const done = `${file} has andromeda-alpha, andromeda-alpha-job.\n`;
  const hint = `Put this line at the beginning of ${home}/.ssh/config:\n\n    Include andromeda.conf\n\n`;
  await says(run('ssh-config', '--write'), 0, done + hint, '');
  assert.equal(await readFile(file, 'utf8'), heading + blocks(knownHosts));
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  await writeFile(join(home, '.ssh/config'), 'Include andromeda.conf\n');
  assert.equal((await run('ssh-config', '--write')).stderr, done);
  const elsewhere = join(home, 'conf/hosts');
  assert.equal(
    (await run('ssh-config', 'alpha', '--write', elsewhere)).stderr,
    `${elsewhere} has andromeda-alpha, andromeda-alpha-job.\n${hint.replace('andromeda.conf', elsewhere)}`,
  );
});

test('where the key that lies here was revoked, it says how to come to a new one', async (t) => {
  const key = keygen('-t', 'ed25519');
  const revoked = { id: 'k1', fingerprint: keygenFingerprint(key.publicKey), lifecycle_state: 'revoked' };
  const { run, home } = await withSsh(t, {
    [accessRoute]: { ...access, ready: false, reason: 'no_keys' },
    'GET /me/ssh-keys': { keys: [revoked] },
  });
  await mkdir(join(home, '.ssh'));
  const file = join(home, '.ssh/id_ed25519');
  await writeFile(`${file}.pub`, key.publicKey);
  const advice = `\`ssh-keygen -t ed25519 -f ${file}_2\`, and then \`andromeda keys add ${file}_2.pub\``;
  await says(run('ssh', 'alpha'), 1, `You have no SSH key registered that lets you in: ${advice}.\n`);
});
