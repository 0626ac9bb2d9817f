import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { insertRow } from '../../src/store/engine/rows.ts';
import { alpha, becomes, beta, eventually, physics, type Reply, startTestApp } from '../support/app.ts';
import { freePorts } from '../support/ports.ts';
import { keygenFingerprint, newPublicKey } from '../support/ssh-keys.ts';
import { granting } from '../support/store.ts';
import { setSimulated } from './support.ts';

// The reasons in their order: test/domain/access-decision.test.ts.
test('ssh-access says when a change of keys or rights has reached the cluster, and what to connect to', async () => {
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

  await eventually(access, ({ body }) => body.observation_current && body.reason === 'no_keys');
  const { status, body, headers } = await access();
  assert.deepEqual([status, headers.get('cache-control')], [200, 'no-store']);
  const { host_key, observed_at, manifest_generation, ...rest } = body;
  assert.match(host_key, /^ssh-ed25519 AAAA\S+$/);
  assert.ok(Date.parse(observed_at) && manifest_generation >= 1);
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

  const [first, second, extra] = [newPublicKey(), newPublicKey(), newPublicKey()];
  const shown = (one: Reply['body']) => [one.ready, one.reason, one.key_fingerprints];
  const firstId = await register('bob', first);
  const registered = await confirmed();
  assert.deepEqual(shown(registered), [true, 'ready', [keygenFingerprint(first)]]);
  assert.equal(registered.ssh_key_set_generation, 1);
  const secondId = await register('bob', second);
  assert.deepEqual((await confirmed()).key_fingerprints, [first, second].map(keygenFingerprint));
  await revoke('bob', secondId);
  // A key that is revoked leaves at once, before the cluster confirms.
  assert.deepEqual((await access()).body.key_fingerprints, [keygenFingerprint(first)]);
  assert.equal((await confirmed()).ready, true);
  await revoke('bob', firstId);
  assert.equal((await access()).body.reason, 'no_keys');
  const without = await confirmed();
  assert.deepEqual([shown(without), without.ssh_key_set_generation], [[false, 'no_keys', []], 4]);

  await register('bob', newPublicKey());
  const before = (await confirmed()).ssh_key_set_generation;
  const { body: onBeta } = await eventually(
    () => access('bob', beta),
    (reply) => reply.body.reason !== 'cluster_inactive',
  );
  assert.deepEqual(
    [
      onBeta.ready,
      onBeta.reason,
      onBeta.port,
      onBeta.manifest_generation,
      onBeta.observed_manifest_generation,
    ],
    [false, 'gateway_unavailable', service.gatewayPort, 0, 0],
  );
  const { hostname, host_key: key, host_key_fingerprint, shell } = onBeta;
  assert.deepEqual([hostname, key, host_key_fingerprint, shell], ['', '', '', ''], 'it has no SSH endpoint');

  // One who just got access; a first account restarts the login node, which a report may see.
  await register('eve', newPublicKey());
  const { id: userId } = (await service.business('/me', { as: 'eve' })).body.user;
  await service.app.store.write(async ({ db, changed }) => {
    await insertRow(db, 'holdings', granting({ organizationId: org, userId }, 'clusters.ssh.admin'));
    changed({ kind: 'organization', organizationId: org });
  });
  const seen = new Set<string>();
  await eventually(
    () => access('eve'),
    (reply) => Boolean(seen.add(reply.body.reason)) && reply.body.ready,
  );
  for (const one of ['ready', 'gateway_unavailable']) seen.delete(one);
  assert.match([...seen].join(), /^(access_not_projected|projection_pending)(,projection_pending)?$/);

  // Another person's change delays new logins at most briefly.
  await register('ada', newPublicKey());
  await eventually(access, (reply) => reply.body.observation_current && reply.body.ready);

  // A key set that the cluster does not apply is pending until it does.
  await setSimulated(service, alpha, { failure: 'the disk is full' });
  await register('bob', extra);
  const pending = async () => {
    const { body: one } = await access();
    assert.deepEqual([one.ready, one.reason], [false, 'projection_pending']);
    return one;
  };
  const waiting = await pending();
  assert.equal(waiting.ssh_key_set_generation, before);
  assert.equal(waiting.key_fingerprints.includes(keygenFingerprint(extra)), false);
  const { generation } = await keys();
  const delivery = () => service.business(`/organizations/${org}/clusters/${alpha}/access`, { as: 'bob' });
  await becomes(async () => (await delivery()).body.state, 'failed');
  const failed = await pending();
  assert.equal(failed.observation_current, false);
  assert.ok(failed.observed_manifest_generation < failed.manifest_generation);
  await setSimulated(service, alpha, { failure: undefined });
  const after = await confirmed();
  assert.deepEqual([after.ready, after.ssh_key_set_generation], [true, generation]);
  assert.ok(after.key_fingerprints.includes(keygenFingerprint(extra)));
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
