/** Three servers, as processes, on one PostgreSQL: one leads, and another when that one is gone or halted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../support/app.ts';
import { missingPostgres } from '../support/postgres-server.ts';
import {
  gamma,
  type ServerProcess,
  type ServerProcesses,
  shareDatabase,
} from '../support/server-processes.ts';

const skip = missingPostgres() ?? false;

/** Three that start at once on an empty database. */
async function startThree(): Promise<ServerProcesses & { servers: ServerProcess[] }> {
  const shared = await shareDatabase();
  try {
    const servers = await Promise.all(['one', 'two', 'three'].map((name) => shared.start(name)));
    return Object.assign(shared, { servers });
  } catch (error) {
    await shared[Symbol.asyncDispose]();
    throw error;
  }
}

/** Gives somebody a binding in a namespace. One that is halted while it writes keeps the others from it for a few seconds. */
async function guest(server: ServerProcess, namespace: string, role?: string): Promise<string> {
  return command(server, '/operator/grants', {
    email: 'eve@elsewhere.example',
    cluster_id: gamma,
    relation: 'kubernetes.viewer',
    scope: namespace,
    ...(role !== undefined && { role_id: role }),
  });
}

/** Runs a command about a grant, and returns its ID. */
async function command(server: ServerProcess, path: string, body: object): Promise<string> {
  const key = crypto.randomUUID();
  const { status, body: answer } = await eventually(
    () => server.call(path, { as: 'root', body, key }),
    (reply) => reply.status !== 503,
  );
  assert.ok(status === 201 || status === 200, `${status} ${JSON.stringify(answer)}`);
  return (answer as { grant: { id: string } }).grant.id;
}

/** Holds the first request for a ClusterRole, which is made right before somebody is bound to it, and its answer. */
function holdRole({ api }: ServerProcesses, role: string) {
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isFirst = true;
  api.fault = async ({ path }) => {
    if (!isFirst || !path.endsWith(`/clusterroles/${role}`)) return undefined;
    isFirst = false;
    asked.resolve();
    await answered.promise;
    return undefined;
  };
  return { asked: asked.promise, answer: () => answered.resolve() };
}

const boundIn = (shared: ServerProcesses) =>
  [...shared.api.bindings.all.values()].map(({ metadata }) => metadata.namespace ?? '').sort();
const untilBound = (shared: ServerProcesses, namespace: string) =>
  eventually(
    async () => boundIn(shared),
    (namespaces) => namespaces.includes(namespace),
  );

const written = ({ api }: ServerProcesses) =>
  api.asked.filter(({ method, path }) => method !== 'GET' && path.includes('rolebindings')).length;

async function leaderOf(shared: ServerProcesses & { servers: ServerProcess[] }): Promise<ServerProcess> {
  const name = await eventually(shared.leader, (found) => found !== undefined);
  const server = shared.servers.find((one) => one.name === name);
  assert.ok(server);
  return server;
}

test('a change on any server is applied once; a leader that is killed, halted or stopped is taken over from', {
  skip,
}, async (t) => {
  await using shared = await startThree();
  const { servers, api } = shared;
  const first = await leaderOf(shared);
  const survivors = servers.filter((one) => one !== first);
  const [near, far] = survivors as [ServerProcess, ServerProcess];

  await t.test('three servers apply what is changed on one of them once', async () => {
    await eventually(
      async () => boundIn(shared),
      (all) => all.length === 1,
    );
    const before = written(shared);
    await guest(near, 'team-a');
    await untilBound(shared, 'team-a');
    // A few passes later as well.
    const passes = api.asked.length;
    await eventually(
      async () => api.asked.length,
      (count) => count > passes + 20,
    );
    assert.equal(written(shared) - before, 1);
  });

  await t.test('what operators see of the servers and of passes is the same on each', async () => {
    const listed = (server: ServerProcess) => server.call('/operator/servers', { as: 'root' });
    for (const server of servers) {
      const { body } = (await listed(server)) as { body: { servers: Record<string, string>[] } };
      const states = body.servers.map(({ name, state, answers }) => [name, state, answers]).sort();
      const expected = ['one', 'three', 'two'].map((name) => [name, 'live', name === server.name]);
      assert.deepEqual(states, expected);
    }
    type Problems = { body: { problems: { area: string; about: string }[] } };
    for (const server of servers)
      await eventually(
        async () => (await server.call('/operator/problems', { as: 'root' })) as unknown as Problems,
        ({ body }) => {
          const found = body.problems.filter(({ area }) => area === 'server').map(({ about }) => about);
          // Each has ports of its own here, and so other addresses; nothing else differs.
          return found.sort().join() === 'business.url,platform.url';
        },
      );
    type Clusters = { body: { clusters: { sides: { state: string; next_try_at: string | null }[] }[] } };
    for (const server of servers)
      await eventually(
        async () => (await server.call('/operator/clusters', { as: 'root' })) as unknown as Clusters,
        ({ body }) => {
          const side = body.clusters[0]?.sides[0];
          return side?.state === 'reported' && side.next_try_at !== null;
        },
      );
  });

  await t.test('killed, it is taken over from, also by what was changed meanwhile', async () => {
    const killedAt = Date.now();
    await first.kill('SIGKILL');
    await guest(far, 'team-b');
    await untilBound(shared, 'team-b');
    const last = await shared.leader();
    t.diagnostic(`taken over ${Date.now() - killedAt} ms after the kill`);
    assert.ok(survivors.some(({ name }) => name === last));
  });

  await t.test('halted for longer than its time, it writes nothing late, and is there again', async () => {
    const halted = await leaderOf(shared);
    const other = survivors.find((one) => one !== halted) ?? halted;
    // It is about to bind somebody who loses that meanwhile.
    api.world.namespaces.set('late', true);
    const role = holdRole(shared, 'gpu-quota-reader');
    const grant = await guest(other, 'late', 'gpu-quota-reader');
    await role.asked;
    // It may have lost the lead before, on a busy machine.
    const from = halted.lines.length;
    const said = () => halted.lines.slice(from);
    halted.child.kill('SIGSTOP');
    await command(other, `/operator/grants/${grant}/revoke`, {});
    await eventually(shared.leader, (name) => name === other.name);
    await guest(other, 'default');
    await untilBound(shared, 'default');
    role.answer();
    halted.child.kill('SIGCONT');
    await eventually(
      async () => said().filter(({ event }) => event === 'leader.lost').length,
      (count) => count > 0,
    );
    const before = written(shared);
    const passes = api.asked.length;
    await eventually(
      async () => api.asked.length,
      (count) => count > passes + 20,
    );
    assert.deepEqual([await shared.leader(), written(shared) - before], [other.name, 0]);
    const late = api.asked.filter(({ method, path }) => method !== 'GET' && path.includes('/late/'));
    assert.deepEqual(late, []);
    const applied = said().slice(said().findIndex(({ event }) => event === 'leader.lost'));
    assert.deepEqual(
      applied.filter(({ event }) => event === 'sync.applied' || event === 'leader.began'),
      [],
    );
  });

  await t.test('stopped, it leaves the lead to another at once', async () => {
    const stopped = await leaderOf(shared);
    const other = survivors.find((one) => one !== stopped) ?? stopped;
    await stopped.kill('SIGTERM');
    await eventually(shared.leader, (name) => name === other.name);
    const gone = other.lines.filter(({ event, name }) => event === 'servers.gone' && name === stopped.name);
    assert.equal(gone.length, 0, 'it was not waited for');
  });
});
