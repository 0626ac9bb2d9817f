/** IDs in the log: lines about a write, about the passes that bring it to clusters, and about logins there can be joined. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { createLogger } from '../../src/lib/log.ts';
import { alpha, beta, eventually, startTestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';

type Line = Record<string, unknown> & { event: string };

/** A service, and what it logs. */
async function loggedApp() {
  const lines: Line[] = [];
  const service = await startTestApp({ log: createLogger('debug', (line) => lines.push(JSON.parse(line))) });
  const find = async (event: string, fields: object) => {
    const wanted = Object.entries(fields);
    const search = async () =>
      lines.find(
        (line) =>
          line.event === event && wanted.every(([name, value]) => isDeepStrictEqual(line[name], value)),
      );
    return (await eventually(search, (line) => line !== undefined)) ?? assert.fail();
  };
  return {
    service,
    find,
    /** The pass over a cluster after which a command is in force there. */
    async passOf(commandId: string, clusterId: string) {
      const isIt = (line: Line) =>
        line['clusterId'] === clusterId &&
        line['behindMs'] === 0 &&
        (line['commands'] as string[] | undefined)?.includes(commandId);
      const search = async () => lines.find((line) => line.event === 'sync.passed' && isIt(line));
      return (await eventually(search, (line) => line !== undefined)) ?? assert.fail();
    },
  };
}

test('from the ID of a reply, lines of the log lead to its command, and to the clusters that have it in force', async () => {
  const { service, find, passOf } = await loggedApp();
  await using _ = service;
  // The passes of the start are over, or one of them would apply the key.
  for (const side of ['slurm', 'kubernetes']) await find('sync.converged', { side });
  const reply = await service.write('/me/ssh-keys', {
    as: 'bob',
    body: { public_key: newPublicKey() },
    headers: { 'X-Request-Id': 'one-of-bob' },
  });
  const { commandId } = await find('http.request', { requestId: reply.headers.get('x-request-id') });
  assert.equal(commandId, reply.body.command_id);
  assert.equal((await passOf(`${commandId}`, alpha))['side'], 'slurm');
  assert.equal((await passOf(`${commandId}`, beta))['side'], 'kubernetes');
  const applied = await find('sync.applied', { commands: [`${commandId}`] });
  assert.equal(applied['clusterId'], alpha);
});

test('the lines of a login have an ID of their own, and those of the cluster, the person and the key', async () => {
  const { service, find } = await loggedApp();
  await using _ = service;
  using bob = await sshPerson(service, 'bob');
  const login = { clusterId: alpha, userId: bob.userId, keyId: bob.keyId };
  assert.equal((await bob.ssh([bob.target, 'true'])).status, 0);
  const { id } = await find('gateway.login.accepted', login);
  await find('gateway.session.closed', { ...login, id });
  await service.write(`/me/ssh-keys/${bob.keyId}/revoke`, { as: 'bob' });
  assert.notEqual((await bob.ssh([bob.target, 'true'])).status, 0);
  await find('gateway.login.refused', { ...login, reason: 'key_revoked' });
});
