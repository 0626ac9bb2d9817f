import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { alpha, beta, eventually, physics, type Reply, startTestApp } from '../support/app.ts';
import { freePorts } from '../support/ports.ts';
import { keygenFingerprint, newPublicKey } from '../support/ssh-keys.ts';
import { granting } from '../support/store.ts';
import { setSimulated } from './support.ts';

test('GET /clusters/{clusterId}/ssh-access', async (t) => {
  await using service = await startTestApp({
    lab: {
      ...physics,
      grants: [{ user: 'eve@physics.example', cluster: 'alpha', relation: 'kubernetes.admin' }],
    },
  });
  const org = (await service.business('/me', { as: 'bob' })).body.default_org_id;
  const access = (as = 'bob', clusterId = alpha) =>
    service.platform(`/clusters/${clusterId}/ssh-access?organizationId=${org}`, { as });
  const keys = async (as = 'bob') => (await service.business('/me/ssh-keys', { as })).body;
  const register = async (as: string, public_key: string) =>
    (await service.write('/me/ssh-keys', { as, body: { public_key } })).body.ssh_key.id;
  const revoke = (as: string, id: string) => service.write(`/me/ssh-keys/${id}/revoke`, { as });
  /** The contract's way to confirm that a key change reached the cluster. */
  const confirmed = async (as = 'bob') => {
    const { generation } = await keys(as);
    const { login_shell: shell } = (await service.business('/me', { as })).body.user;
    const reply = await eventually(
      () => access(as),
      ({ body }) =>
        body.observation_current && body.ssh_key_set_generation === generation && body.shell === shell,
    );
    return reply.body;
  };

  await t.test('before the first key: no_keys, with everything needed to connect', async () => {
    await eventually(access, ({ body }) => body.observation_current && body.reason === 'no_keys');
    const { status, body, headers } = await access();
    assert.equal(status, 200);
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.match(body.host_key, /^ssh-ed25519 AAAA\S+$/);
    const { host_key, observed_at, manifest_generation, ...rest } = body;
    assert.equal(Number.isNaN(Date.parse(observed_at)), false);
    assert.ok(manifest_generation >= 1);
    assert.deepEqual(rest, {
      hostname: '127.0.0.1',
      port: service.gatewayPort,
      username: 'bob',
      host_key_fingerprint: keygenFingerprint(host_key),
      login_mode: 'Shared',
      ready: false,
      reason: 'no_keys',
      observed_manifest_generation: manifest_generation,
      ssh_key_set_generation: 0,
      key_fingerprints: [],
      shell: '/bin/bash',
      observation_current: true,
    });
  });

  const first = newPublicKey();
  const firstId = await register('bob', first);
  await t.test('after registering: the key set generation is confirmed and it becomes ready', async () => {
    const body = await confirmed();
    assert.deepEqual([body.ready, body.reason], [true, 'ready']);
    assert.equal(body.ssh_key_set_generation, 1);
    assert.deepEqual(body.key_fingerprints, [keygenFingerprint(first)]);
  });

  await t.test('a second key is confirmed too, and leaves at once when it is revoked', async () => {
    const second = newPublicKey();
    const id = await register('bob', second);
    assert.deepEqual((await confirmed()).key_fingerprints, [first, second].map(keygenFingerprint));
    await revoke('bob', id);
    // Before the cluster confirms.
    assert.deepEqual((await access()).body.key_fingerprints, [keygenFingerprint(first)]);
    assert.deepEqual((await confirmed()).ready, true);
  });

  await t.test('the last key revoked: no_keys, which the same comparison confirms', async () => {
    await revoke('bob', firstId);
    assert.equal((await access()).body.reason, 'no_keys');
    const body = await confirmed();
    assert.deepEqual([body.ready, body.reason, body.key_fingerprints], [false, 'no_keys', []]);
    assert.equal(body.ssh_key_set_generation, 4);
  });

  await register('bob', newPublicKey());
  await confirmed();
  const reason = async (expected: string, reply?: Reply) => {
    const { status, body } = reply ?? (await access());
    assert.deepEqual([status, body.ready, body.reason], [200, false, expected]);
    return body;
  };

  await t.test('a Kubernetes-only cluster has no SSH endpoint: gateway_unavailable', async () => {
    await eventually(
      () => access('bob', beta),
      ({ body }) => body.reason !== 'cluster_inactive',
    );
    const body = await reason('gateway_unavailable', await access('bob', beta));
    assert.deepEqual([body.manifest_generation, body.observed_manifest_generation], [0, 0]);
    assert.equal(body.shell, '');
    const { hostname, host_key, host_key_fingerprint, port } = body;
    assert.deepEqual([hostname, host_key, host_key_fingerprint], ['', '', '']);
    assert.equal(port, service.gatewayPort);
  });

  await t.test('one who just got access: access_not_projected or pending, then ready', async () => {
    await register('eve', newPublicKey());
    const { id } = (await service.business('/me', { as: 'eve' })).body.user;
    await service.app.store.write(async ({ db, changed }) => {
      await db
        .insertInto('holdings')
        .values(granting({ organizationId: org, userId: id }, 'clusters.ssh.admin'))
        .execute();
      changed({ kind: 'organization', organizationId: org });
    });
    const seen = new Set<string>();
    await eventually(
      () => access('eve'),
      ({ body }) => Boolean(seen.add(body.reason)) && body.ready,
    );
    seen.delete('ready');
    // A first account restarts the login node, which a report may see.
    seen.delete('gateway_unavailable');
    assert.deepEqual(
      [...seen].filter((one) => !/^(access_not_projected|projection_pending)$/.test(one)),
      [],
    );
    assert.ok(seen.size > 0);
  });

  await t.test('another person’s change delays new logins at most briefly', async () => {
    await register('ada', newPublicKey());
    await eventually(access, ({ body }) => body.observation_current && body.ready);
  });

  await t.test('a key set that the cluster does not apply: projection_pending, until it does', async () => {
    const before = (await confirmed()).ssh_key_set_generation;
    await setSimulated(service, alpha, { failure: 'the disk is full' });
    const extra = newPublicKey();
    const id = await register('bob', extra);
    const body = await reason('projection_pending');
    assert.equal(body.ssh_key_set_generation, before);
    assert.equal(body.key_fingerprints.includes(keygenFingerprint(extra)), false);
    const { generation } = await keys();
    await eventually(
      () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'bob' }),
      (reply) => reply.body.state === 'failed',
    );
    const failed = await reason('projection_pending');
    assert.equal(failed.observation_current, false);
    assert.ok(failed.observed_manifest_generation < failed.manifest_generation);
    await setSimulated(service, alpha, { failure: undefined });
    const after = await confirmed();
    assert.deepEqual([after.ready, after.ssh_key_set_generation], [true, generation]);
    assert.ok(after.key_fingerprints.includes(keygenFingerprint(extra)));
    await revoke('bob', id);
  });
});

test('ssh-access says gateway_unavailable while the process that people connect to stands still', async () => {
  const [port = 0] = await freePorts(1);
  const gateway = { listen: `127.0.0.1:${port}`, port, processes: 1 };
  await using service = await startTestApp({ config: { gateway } });
  const org = (await service.business('/me', { as: 'bob' })).body.default_org_id;
  const access = () => service.platform(`/clusters/${alpha}/ssh-access?organizationId=${org}`, { as: 'bob' });
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  await eventually(access, ({ body }) => body.ready);
  const [{ pid }] = JSON.parse(
    readFileSync(join(service.dataDir, 'data/run/gateways.json'), 'utf8'),
  ).processes;
  process.kill(pid, 'SIGSTOP');
  const { body } = await eventually(access, (reply) => !reply.body.ready);
  assert.equal(body.reason, 'gateway_unavailable');
  process.kill(pid, 'SIGCONT');
  await eventually(access, (reply) => reply.body.ready && reply.body.reason === 'ready');
});
