/** Who is let in and who stays, in the whole service with OpenSSH's own client: the contract's sentences on closing. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { alpha, beta, eventually, physics, startTestApp, type TestApp } from '../support/app.ts';
import { fails } from '../support/heard.ts';
import { freePorts, listening } from '../support/ports.ts';
import { type SshPerson, sshPerson } from '../support/ssh-person.ts';

/** The three ways to be connected: with a session, with a forward only, with a file transfer only. */
async function openAll(person: SshPerson, service: TestApp, name: string) {
  const shell = person.start([person.target, 'echo up; exec sleep 60']);
  await shell.said;
  const echo = createServer((socket) => socket.resume().end('pong'));
  const port = await listening(echo);
  const [local = 0] = await freePorts(1);
  const forward = person.start(['-N', '-L', `127.0.0.1:${local}:localhost:${port}`, person.target]);
  const sftp = spawn('sftp', [...sftpOptions(person, service, name), '127.0.0.1'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const transfer = new Promise<{ status: number | null; err: string }>((resolve) => {
    let err = '';
    sftp.stderr.setEncoding('utf8').on('data', (part) => {
      err += part;
      // It waits for its next command.
      if (err.includes('Connection closed')) sftp.stdin.end();
    });
    sftp.on('close', (status) => resolve({ status, err }));
  });
  const sessions = async () =>
    (await service.business('/operator/sessions', { as: 'root' })).body.sessions.length as number;
  await eventually(sessions, (count) => count === 3);
  echo.close();
  return { shell: shell.ended, forward: forward.ended, transfer, sessions };
}

/** sftp has no -l, and another flag for the port. */
function sftpOptions(person: SshPerson, service: TestApp, name: string): string[] {
  const rest = person.options.filter(
    (option, at, all) => !['-p', '-l'].includes(option) && !['-p', '-l'].includes(all[at - 1] ?? ''),
  );
  return [...rest, '-P', `${service.gatewayPort}`, '-o', `User=${alpha}.${name}`];
}

const memberOf = (person: SshPerson) => `/organizations/${person.orgId}/members/${person.userId}`;

const closings: [
  what: string,
  said: RegExp,
  change: (service: TestApp, person: SshPerson, name: string) => Promise<{ status: number; body: unknown }>,
][] = [
  [
    'when the key used is revoked',
    /This key was revoked/,
    (service, { keyId }, as) => service.write(`/me/ssh-keys/${keyId}/revoke`, { as }),
  ],
  [
    'when the user’s access is revoked: clusters.ssh is gone',
    /Your SSH access to this cluster was removed/,
    (service, person) => {
      const body = { permissions: ['clusters.read'] };
      return service.write(`${memberOf(person)}/permissions`, { as: 'ada', method: 'PUT', body });
    },
  ],
  [
    'when the user’s access is revoked: no longer a member',
    /Your SSH access to this cluster was removed/,
    (service, person) => service.write(`${memberOf(person)}/remove`, { as: 'ada' }),
  ],
  [
    'when the person is deactivated, which revokes the key too',
    /Your SSH access to this cluster was removed/,
    (service, { userId }) => service.write(`/operator/people/${userId}/deactivate`, { as: 'root' }),
  ],
  [
    'when the cluster is released',
    /This cluster is releas(ing|ed) \(cluster_inactive\)/,
    (service) => service.write(`/operator/clusters/${alpha}/release`, { as: 'root' }),
  ],
];

describe('one service', () => {
  let service: TestApp;
  before(async () => {
    const [{ members = [], ...organization } = assert.fail(), ...others] = physics.organizations ?? [];
    const people = closings.map((_, n) => ({
      ...{ email: `p${n}@physics.example`, role: 'member' as const, username: `p${n}` },
      permissions: ['clusters.read' as const, 'clusters.ssh' as const],
    }));
    const organizations = [{ ...organization, members: [...members, ...people] }, ...others];
    // So late that only the notice of the change can have ended them.
    service = await startTestApp({
      lab: { ...physics, organizations },
      gatewayLimits: { recheckSeconds: 60 },
    });
  });
  after(() => service[Symbol.asyncDispose]());

  test('an operator ends a session with a reason, which the person reads', async () => {
    using bob = await sshPerson(service, 'bob');
    const session = bob.start([bob.target, 'echo up; exec sleep 60']);
    await session.said;
    const { body } = await service.business('/operator/sessions', { as: 'root' });
    const [{ id }] = body.sessions;
    const reason = `Maintenance of the file server. ${'Please log in again at noon. '.repeat(8)}`.trim();
    await service.write(`/operator/sessions/${id}/close`, { as: 'root', reason });
    assert.ok((await session.ended).err.includes(reason));
  });

  test('people see and close their own sessions, and read which logins of theirs were refused', async () => {
    using bob = await sshPerson(service, 'bob');
    const session = bob.start([bob.target, 'echo up; exec sleep 60']);
    await session.said;
    const own = async (as: string) => (await service.business('/me/ssh-sessions', { as })).body.sessions;
    const [{ id, cluster_id: clusterId }] = await own('bob');
    assert.equal(clusterId, alpha);
    assert.deepEqual(await own('ada'), []);
    const close = (as: string) => service.write(`/me/ssh-sessions/${id}/close`, { as, reason: 'done' });
    assert.equal((await close('ada')).status, 404);
    assert.equal((await close('bob')).status, 200);
    assert.match((await session.ended).err, /You have closed this session/);

    await service.write(`/me/ssh-keys/${bob.keyId}/revoke`, { as: 'bob' });
    await bob.start([bob.target, 'true']).ended;
    const refusals = await eventually(
      async () => (await service.business('/me/ssh-refusals', { as: 'bob' })).body.refusals,
      (list) => list.length > 0,
    );
    assert.equal(refusals[0].key_id, bob.keyId);
    assert.match(refusals[0].message, /This key was revoked/);
    assert.deepEqual((await service.business('/me/ssh-refusals', { as: 'ada' })).body.refusals, []);
  });

  test('not closed: by another member’s key change that leaves the user list unchanged, nor by a shell or permission change of one’s own', async () => {
    using bob = await sshPerson(service, 'bob');
    using ada = await sshPerson(service, 'ada');
    const session = bob.start([bob.target, 'echo up; exec sleep 60']);
    await session.said;
    using second = await sshPerson(service, 'ada');
    const body = { permissions: ['clusters.read', 'clusters.ssh.admin'] };
    for (const { status } of [
      await service.write(`/me/ssh-keys/${second.keyId}/revoke`, { as: 'ada' }),
      await service.write('/me/login-preferences', { as: 'bob', method: 'PUT', body: { shell: '/bin/sh' } }),
      await service.write(`${memberOf(bob)}/permissions`, { as: 'ada', method: 'PUT', body }),
    ])
      assert.equal(status, 200);
    await eventually(bob.access, ({ ready, shell }) => ready === true && shell === '/bin/sh');
    await sleep(1500);
    assert.equal(session.child.exitCode, null);
    assert.equal((await ada.ssh([ada.target, 'exit 4'])).status, 4);
  });

  for (const [n, [what, said, change]] of closings.entries())
    test(`sessions closed by the gateway, forwarded connections and file transfers too: ${what}`, async () => {
      using person = await sshPerson(service, `p${n}`);
      const open = await openAll(person, service, `p${n}`);
      const reply = await change(service, person, `p${n}`);
      assert.ok(reply.status < 300, JSON.stringify(reply.body));
      for (const { status, err } of await Promise.all([open.shell, open.forward])) {
        assert.equal(status, 255);
        assert.match(err, said);
      }
      assert.match((await open.transfer).err, said);
      fails(await person.ssh([person.target, 'true']), 255, /Permission denied/);
    });
});

test('one gateway serves many clusters, which show the same host key; a Kubernetes-only cluster lets no one in', async () => {
  const gamma = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
  const [first] = physics.clusters ?? [];
  assert.ok(first);
  const clusters = [...(physics.clusters ?? []), { ...first, name: 'gamma', id: gamma }];
  await using service = await startTestApp({ lab: { ...physics, clusters } });
  using bob = await sshPerson(service, 'bob');
  const path = `/clusters/${gamma}/ssh-access?organizationId=${bob.orgId}`;
  const access = async () => (await service.platform(path, { as: 'bob' })).body;
  const { host_key } = await eventually(access, ({ ready }) => ready === true);
  assert.equal(host_key, (await bob.access())['host_key']);
  bob.options.splice(bob.options.indexOf('-l'), 2);
  const as = (cluster: string) => bob.ssh(['-l', `${cluster}.bob`, bob.target, 'true']);
  for (const cluster of [alpha, gamma]) assert.equal((await as(cluster)).status, 0);
  assert.match((await as(beta)).err, /Kubernetes only and has no SSH logins[\s\S]*Permission denied/);
});

test('when the login node restarts for a user-list change, another person’s first key: a line that says so', async () => {
  await using service = await startTestApp({ gatewayLimits: { recheckSeconds: 60 } });
  using bob = await sshPerson(service, 'bob');
  const open = await openAll(bob, service, 'bob');
  using ada = await sshPerson(service, 'ada');
  for (const { err } of await Promise.all([open.shell, open.forward, open.transfer]))
    assert.match(err, /The login node is restarting\. Log in again in a moment\./);
  for (const person of [ada, bob]) {
    await eventually(person.access, ({ ready }) => ready === true);
    assert.equal((await person.ssh([person.target, 'pwd'])).out, `/home/${person === ada ? 'ada' : 'bob'}\n`);
  }
});

test('when the gateway cannot confirm access: a new login after two minutes without an observation, an open session after five', async () => {
  await using service = await startTestApp({ gatewayLimits: { recheckSeconds: 1 } });
  using bob = await sshPerson(service, 'bob');
  const session = bob.start([bob.target, 'echo up; exec sleep 60']);
  await session.said;
  const silent = {
    clusters: physics.clusters?.slice(0, 1).map((cluster) => ({
      ...cluster,
      simulated: { ...(cluster.simulated ?? { computeNodes: 1, gpusPerNode: 1 }), silent: true },
    })),
  };
  const applied = await service.write('/operator/lab', { as: 'root', body: { lab: silent } });
  assert.equal(applied.status, 200, JSON.stringify(applied.body));
  const seen = async () => (await service.business('/operator/clusters', { as: 'root' })).body.clusters[0];
  await eventually(seen, ({ failure }) => failure !== null);
  service.advance(150_000);
  const refused = await bob.ssh([bob.target, 'true']);
  assert.match(
    refused.err,
    /the cluster has not reported lately \(observation_stale\)\. Wait for its next report/,
  );
  await sleep(1500);
  assert.equal(session.child.exitCode, null, 'it is looked at every second, and stays');
  service.advance(151_000);
  fails(await session.ended, 255, /Your access cannot be confirmed: the cluster has not reported lately/);
});
