/** Three servers, as processes, on one PostgreSQL; without processes: test/sync/servers.test.ts. */
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

async function holderOf(shared: ServerProcesses & { servers: ServerProcess[] }): Promise<ServerProcess> {
  const name = await eventually(shared.holder, (found) => found !== undefined);
  const server = shared.servers.find((one) => one.name === name);
  assert.ok(server);
  return server;
}

test('a holder that is killed or halted is taken over from, and writes nothing late', {
  skip,
}, async (t) => {
  await using shared = await startThree();
  const { servers, api } = shared;
  const first = await holderOf(shared);
  const survivors = servers.filter((one) => one !== first);
  const [survivor] = survivors as [ServerProcess];

  await t.test('killed, it is taken over from, also by what was changed meanwhile', async () => {
    const killedAt = Date.now();
    await first.kill('SIGKILL');
    await guest(survivor, 'team-b');
    await untilBound(shared, 'team-b');
    const last = await shared.holder();
    t.diagnostic(`taken over ${Date.now() - killedAt} ms after the kill`);
    assert.ok(survivors.some(({ name }) => name === last));
  });

  await t.test('halted for longer than its time, it writes nothing late, and is there again', async () => {
    const halted = await holderOf(shared);
    const other = survivors.find((one) => one !== halted) ?? halted;
    // It is about to bind somebody who loses that meanwhile.
    api.world.namespaces.set('late', true);
    const role = holdRole(shared, 'gpu-quota-reader');
    const grant = await guest(other, 'late', 'gpu-quota-reader');
    await role.asked;
    // It may have lost leases before, on a busy machine.
    const from = halted.lines.length;
    const said = () => halted.lines.slice(from);
    halted.child.kill('SIGSTOP');
    await command(other, `/operator/grants/${grant}/revoke`, {});
    await eventually(shared.holder, (name) => name === other.name);
    await guest(other, 'default');
    await untilBound(shared, 'default');
    role.answer();
    halted.child.kill('SIGCONT');
    await eventually(
      async () => said().filter(({ event }) => event === 'lease.lost').length,
      (count) => count > 0,
    );
    const before = written(shared);
    const passes = api.asked.length;
    await eventually(
      async () => api.asked.length,
      (count) => count > passes + 20,
    );
    assert.deepEqual([await shared.holder(), written(shared) - before], [other.name, 0]);
    const late = api.asked.filter(({ method, path }) => method !== 'GET' && path.includes('/late/'));
    assert.deepEqual(late, []);
    const applied = said().slice(said().findIndex(({ event }) => event === 'lease.lost'));
    assert.deepEqual(
      applied.filter(({ event }) => event === 'sync.applied' || event === 'lease.taken'),
      [],
    );
  });
});
