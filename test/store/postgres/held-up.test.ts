/** A PostgreSQL with a locked table, or without a free connection: what needs neither goes on. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { createPool } from '../../../src/store/dialects/postgres-pool.ts';
import type { Session } from '../../../src/store/dialects/postgres-session.ts';
import { openStore } from '../../../src/store/index.ts';
import { eventually, startTestApp } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { createPostgres, missingPostgres, type TestPostgres, urlOf } from '../../support/postgres-server.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';

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

test('a table that somebody has locked holds up what needs it, and nothing else', { skip }, async () => {
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

test('where the database takes no more connections, a write has one of those that nobody uses', {
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

test('a connection that nobody uses for a while is closed', async (t) => {
  let open = 0;
  const pool = createPool({
    size: 3,
    idleMs: 40,
    async connect() {
      open += 1;
      const session = {
        isOpen: true,
        async close() {
          session.isOpen = false;
          open -= 1;
        },
      };
      return session as unknown as Session;
    },
  });
  t.after(() => pool.close());
  const taken = await Promise.all([pool.take(), pool.take(), pool.take()]);
  for (const session of taken.slice(1)) pool.give(session);
  await eventually(
    async () => open,
    (count) => count === 1,
  );
  assert.equal(taken[0]?.isOpen, true);
  if (taken[0]) pool.give(taken[0]);
  assert.equal(pool.closeIdle(), 1);
  assert.equal(open, 0);
});
