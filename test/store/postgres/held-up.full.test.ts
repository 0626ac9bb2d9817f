/** A PostgreSQL with a locked table, or without a free connection: what needs neither goes on. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { sql } from 'kysely';
import { eventually, startTestApp } from '../../support/app.ts';
import { urlOf } from '../../support/postgres-server.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { open } from './counting.ts';
import { connect, postgres, test, usePostgres } from './server.ts';

usePostgres();

/** An app with a database of its own there. */
function startApp() {
  process.env['ANDROMEDA_TEST_POSTGRES'] = postgres.directory;
  return startTestApp();
}

test('a table that is locked holds up what needs it, and nothing else', async (t) => {
  await using service = await startApp();
  const { store } = service.app;
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(store.read);
  const locker = await connect(t, { connectionString: urlOf(postgres.directory, rows[0]?.name ?? '') });
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
    await asking.finally(() => locker.query('rollback'));
  }
  await isServed('/me/ssh-keys');
});

test('a server whose clock is ten minutes off is not ready, and says why', async () => {
  await using service = await startApp();
  const ready = () => service.business('/readyz');
  assert.equal((await ready()).status, 200);
  service.jump(600_000);
  const { body } = await eventually(ready, ({ status }) => status === 503);
  assert.match(body.message, /^The clock of this server is \d+\.\d seconds ahead of that of the database\./);
  service.jump(-600_000);
  await eventually(ready, ({ status }) => status === 200);
});

test('where the database takes no more connections, a write has one of those that are not in use', async (t) => {
  await postgres.query('create role few login connection limit 4');
  await postgres.query("create database few owner few template template0 locale 'C'");
  const url = urlOf(postgres.directory, 'few').replace('postgres@', 'few@');
  const store = await open(t, url);
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
  await eventually(
    () => connect(t, { connectionString: url }).catch(() => undefined),
    (client) => client !== undefined,
  );
  await eventually(
    () =>
      write().then(
        () => true,
        () => false,
      ),
    Boolean,
  );
});
