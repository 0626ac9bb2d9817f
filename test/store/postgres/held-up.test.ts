/** A PostgreSQL with a locked table, or without a free connection: what needs neither goes on. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import pg from 'pg';
import { findPersonOnCluster } from '../../../src/store/access/access-facts.ts';
import { findKubernetesAccess } from '../../../src/store/access/kubernetes-access.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { createGrant } from '../../../src/store/organizations/grants.ts';
import { alpha, eventually, physics, startTestApp } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { createPostgres, missingPostgres, type TestPostgres, urlOf } from '../../support/postgres-server.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { openTestStore, userId } from '../../support/store.ts';

const skip = missingPostgres() ?? false;
let postgres: TestPostgres;
before(async () => {
  if (skip) return;
  postgres = await createPostgres();
  // Where apps of this file have their databases.
  process.env['ANDROMEDA_TEST_POSTGRES'] = postgres.directory;
});
after(() => postgres?.[Symbol.asyncDispose]());

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return client;
}

test('a table that is locked holds up what needs it, and nothing else', { skip }, async () => {
  await using service = await startTestApp();
  const { store } = service.app;
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(store.read);
  const locker = await connectTo(urlOf(postgres.directory, rows[0]?.name ?? ''));
  const seen = async () =>
    (await store.read.selectFrom('servers').select('seen_at').executeTakeFirst())?.seen_at;
  const held = { status: 503, code: 'service_unavailable' };
  const answerOf = async (path: string) => {
    const { status, body } = await service.business(path, { as: 'ada' });
    return { status, code: body.code };
  };
  const isServed = (path: string) =>
    eventually(
      () => answerOf(path),
      ({ status }) => status === 200,
    );
  let isOver = false;
  const askAgain = async () => {
    while (!isOver) {
      assert.deepEqual(await answerOf('/me/ssh-keys'), held);
      await wait(50);
    }
  };
  await locker.query('begin');
  await locker.query('lock table ssh_keys in access exclusive mode');
  const lists = Array.from({ length: 40 }, () => answerOf('/me/ssh-keys'));
  for (const answer of await Promise.all(lists)) assert.deepEqual(answer, held);
  const asking = Promise.all([1, 2, 3, 4].map(askAgain));
  asking.catch(() => {});
  try {
    const before = await seen();
    const body = { public_key: newPublicKey() };
    assert.equal((await service.write('/me/ssh-keys', { as: 'ada', body })).status, 503);
    await eventually(seen, (at) => at !== before);
    for (const path of ['/me', '/permission-profiles', '/readyz']) await isServed(path);
  } finally {
    isOver = true;
    await asking.finally(() => locker.end());
  }
  await isServed('/me/ssh-keys');
});

test('a server whose clock is ten minutes off is not ready, and says why', { skip }, async () => {
  await using service = await startTestApp();
  const ready = () => service.business('/readyz');
  assert.equal((await ready()).status, 200);
  service.jump(600_000);
  const { body } = await eventually(ready, ({ status }) => status === 503);
  assert.match(body.message, /^The clock of this server is \d+\.\d seconds ahead of that of the database\./);
  service.jump(-600_000);
  await eventually(ready, ({ status }) => status === 200);
});

test('what decides over a login, and over bindings, is of one moment, though a table was locked meanwhile', {
  skip,
}, async () => {
  await using opened = await openTestStore(physics);
  const { store, database = '' } = opened;
  const bob = await userId(store, 'bob@physics.example');
  const { organization_id: organizationId } = await store.read
    .selectFrom('clusters')
    .select('organization_id')
    .where('id', '=', alpha)
    .executeTakeFirstOrThrow();
  const relation = 'kubernetes.admin' as const;
  const grant = { clusterId: alpha, userId: bob, grantedBy: bob, scope: null, roleId: null, expiresAt: null };
  await store.write((tx) => createGrant(tx, { ...grant, relation }));
  const login = async () => {
    const found = await findPersonOnCluster(store, alpha, bob);
    return [found?.facts.role, (found?.facts.permissions.length ?? 0) > 0];
  };
  const bindings = async () => {
    const cluster = { id: alpha, organizationId };
    const { members, grants } = await findKubernetesAccess(store, cluster, undefined, Date.now());
    return [members.find((one) => one.userId === bob)?.role ?? 'member', grants.length > 0];
  };
  const locker = await connectTo(database);
  const waiting = async () =>
    (
      await locker.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      )
    ).rows;
  const cases = [
    { read: login, table: 'member_permissions' },
    { read: bindings, table: 'resource_grants' },
  ];
  try {
    for (const { read, table } of cases) {
      await locker.query(`update memberships set role = 'member' where user_id = '${bob}'`);
      const before = await read();
      assert.deepEqual(before, ['member', true]);
      await locker.query('begin');
      await locker.query(`lock table ${table} in access exclusive mode`);
      const reading = read();
      await eventually(waiting, (rows) => rows.length > 0);
      await locker.query(`update memberships set role = 'admin' where user_id = '${bob}'`);
      await locker.query(`delete from ${table} where user_id = '${bob}'`);
      await locker.query('commit');
      const found = await reading;
      const after = ['admin', false];
      assert.deepEqual(await read(), after);
      assert.ok(
        [before, after].some((moment) => isDeepStrictEqual(moment, found)),
        `${found}`,
      );
    }
  } finally {
    await locker.end();
  }
});

test('where the database takes no more connections, a write has one of those that are not in use', {
  skip,
}, async (t) => {
  await postgres.query('create role few login connection limit 4');
  await postgres.query("create database few owner few template template0 locale 'C'");
  const url = urlOf(postgres.directory, 'few').replace('postgres@', 'few@');
  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { database: url });
  t.after(async () => {
    await store.close();
    directory[Symbol.dispose]();
  });
  const write = () => store.write(({ db }) => db.updateTable('counters').set({ value: 1 }).execute());
  const connections = async () =>
    (await postgres.query("select pid from pg_stat_activity where usename = 'few'")).length;
  await write();
  // Those of the start are gone a moment later.
  await eventually(
    async () => {
      await Promise.all([1, 2].map(() => sql`select pg_sleep(0.5)`.execute(store.read)));
      return connections();
    },
    (count) => count === 4,
  );
  // The one that writes is lost, and somebody else takes its place.
  await postgres.query(
    "select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = 'few' and query ~ 'commit$'",
  );
  const other = await eventually(
    () => connectTo(url).catch(() => undefined),
    (client) => client !== undefined,
  );
  t.after(() => other?.end());
  await eventually(
    () =>
      write().then(
        () => true,
        () => false,
      ),
    Boolean,
  );
});
