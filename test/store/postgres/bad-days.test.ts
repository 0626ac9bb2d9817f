/** A PostgreSQL whose connections are cut, that stops, or that another server holds: nothing is lost, and nothing done twice. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import pg from 'pg';
import { openStore, type Store, type Tx } from '../../../src/store/index.ts';
import { eventually } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { createPostgres, missingPostgres, type TestPostgres } from '../../support/postgres-server.ts';

const skip = missingPostgres() ?? false;
let postgres: TestPostgres;
before(async () => {
  if (!skip) postgres = await createPostgres();
});
after(() => postgres?.[Symbol.asyncDispose]());

/** Each store has one of its own. */
const newSchema = () => `s${randomBytes(6).toString('hex')}`;

async function open(t: TestContext, url: (schema: string) => string): Promise<Store> {
  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { database: url(newSchema()) });
  t.after(async () => {
    await store.close();
    directory[Symbol.dispose]();
  });
  return store;
}

const direct = (schema: string) => postgres.url({ schema });

/** Adds one to what a write before it left, so that a write that is lost or made twice shows. */
async function count({ db }: Tx): Promise<number> {
  const { value } = await db.selectFrom('counters').select('value').executeTakeFirstOrThrow();
  await db
    .updateTable('counters')
    .set({ value: value + 1 })
    .execute();
  return value + 1;
}

const counted = async (store: Store) =>
  (await store.read.selectFrom('counters').select('value').executeTakeFirstOrThrow()).value;

/** Ends the connections of the database that match. */
const endConnections = (where: string) =>
  postgres.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend' and ${where}`,
  );

test('a write whose connection is cut before it is committed is made on another one, once', {
  skip,
}, async (t) => {
  const store = await open(t, direct);
  const start = await counted(store);
  for (const step of [0, 1, 2]) {
    let runs = 0;
    const value = await store.write(async (tx) => {
      runs += 1;
      const cut = async (at: number) => {
        if (runs === 1 && at === step) await endConnections("state = 'idle in transaction'");
      };
      await cut(0);
      const { value } = await tx.db.selectFrom('counters').select('value').executeTakeFirstOrThrow();
      await cut(1);
      await tx.db
        .updateTable('counters')
        .set({ value: value + 1 })
        .execute();
      await cut(2);
      return value + 1;
    });
    assert.equal(value, start + step + 1);
    // Cut behind its last statement, it is the commit that finds it, and asks what became of it.
    assert.equal(runs, 2);
    assert.equal(await counted(store), start + step + 1);
  }
  await endConnections('true');
  assert.equal(await store.write(count), start + 4, 'idle connections were cut');
});

test('writes that share a commit whose connection is cut before it are all made, each once', {
  skip,
}, async (t) => {
  const store = await open(t, direct);
  const start = await counted(store);
  let runs = 0;
  const writes = [1, 2, 3, 4].map((number) =>
    store.write(async (tx) => {
      const value = await count(tx);
      if (number === 3 && ++runs === 1) await endConnections("state = 'idle in transaction'");
      return value;
    }),
  );
  const values = await Promise.all(writes);
  assert.deepEqual(
    values,
    [1, 2, 3, 4].map((more) => start + more),
  );
  assert.equal(await counted(store), start + 4);
  assert.equal(runs, 2);
});

test('of a commit whose answer is lost, it is asked what became of it', { skip }, async (t) => {
  const proxy = await startProxy(t, join(postgres.directory, '.s.PGSQL.5432'));
  const store = await open(t, (schema) => through(schema, proxy));
  const start = await counted(store);
  // The question reaches PostgreSQL, and its answer nobody.
  proxy.cutAnswerTo('; commit');
  assert.equal(await store.write(count), start + 1);
  assert.equal(proxy.cuts, 1);
  // PostgreSQL never sees it.
  proxy.cutBefore('; commit');
  assert.equal(await store.write(count), start + 2);
  assert.equal(proxy.cuts, 2);
  // Several that share a commit.
  proxy.cutAnswerTo('; commit');
  const values = await Promise.all([1, 2, 3, 4].map(() => store.write(count)));
  assert.deepEqual(
    values.toSorted(),
    [3, 4, 5, 6].map((more) => start + more),
  );
  assert.equal(await counted(store), start + 6);
});

test('while PostgreSQL is away, everything is refused at once in words; when it is back, it goes on by itself', {
  skip,
}, async (t) => {
  const store = await open(t, direct);
  const start = await counted(store);
  let everything = 0;
  store.onChange((changes) => {
    if (changes.some((change) => 'everything' in change)) everything += 1;
  });
  await postgres.stop('SIGQUIT');
  const refused = [1, 2, 3].map(() =>
    assert.rejects(store.write(count), {
      code: 'service_unavailable',
      message: /takes no writes at the moment/,
    }),
  );
  await Promise.all(refused);
  await assert.rejects(counted(store), { code: 'service_unavailable', message: /cannot be reached/ });
  await assert.rejects(
    store.readSnapshot((db) => counted({ ...store, read: db })),
    { code: 'service_unavailable' },
  );
  await postgres.start();
  await eventually(
    () => store.write(count).catch(() => 0),
    (value) => value === start + 1,
  );
  assert.equal(await eventually(() => counted(store).catch(() => 0), Boolean), start + 1);
  await eventually(async () => everything, Boolean);
});

const through = (schema: string, ...proxies: Proxy[]) =>
  `postgres://postgres@${proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')}/andromeda?sslmode=disable&schema=${schema}`;

test('a host that falls silent holds up nobody for long, and is used again when it speaks; the next one is taken meanwhile', {
  skip,
}, async (t) => {
  const socket = join(postgres.directory, '.s.PGSQL.5432');
  const [only, former, next] = [
    await startProxy(t, socket),
    await startProxy(t, socket),
    await startProxy(t, socket),
  ];
  const alone = await open(t, (schema) => through(schema, only));
  const withNext = await open(t, (schema) => through(schema, former, next));
  const [start, other] = [await counted(alone), await counted(withNext)];
  assert.equal(await alone.write(count), start + 1);
  assert.equal(await withNext.write(count), other + 1);
  // One that starts there waits for another that brings the schema up to date.
  const schema = newSchema();
  const lock = `pg_advisory_lock(1634626675, hashtext('${schema}'))`;
  const holder = new pg.Client({ host: postgres.directory, user: 'postgres', database: 'andromeda' });
  await holder.connect();
  t.after(() => holder.end());
  await holder.query(`select ${lock}`);
  using directory = temporaryDirectory();
  const starting = assert.rejects(openStore(directory.path, { database: through(schema, only) }), {
    code: 'service_unavailable',
    message: /cannot be used: Connection terminated/,
  });
  // It is asked of further on.
  starting.catch(() => {});
  await eventually(
    () => postgres.query("select 1 from pg_stat_activity where query ~ '^select pg_try_advisory_lock'"),
    (rows) => rows.length > 0,
  );
  only.freeze();
  former.freeze();
  const unavailable = { code: 'service_unavailable' };
  await Promise.all([
    assert.rejects(alone.write(count), unavailable),
    assert.rejects(counted(alone), unavailable),
    assert.rejects(
      alone.readSnapshot((read) => counted({ ...alone, read })),
      unavailable,
    ),
    assert.rejects(alone.messages.send('greeting', {}), unavailable),
    eventually(
      () => withNext.write(count).catch(() => 0),
      (value) => value > 0,
    ),
    eventually(
      () => counted(withNext).catch(() => 0),
      (value) => value > 0,
    ),
    starting,
    // One that starts finds the next one as well.
    open(t, (schema) => through(schema, former, next)),
  ]);
  only.thaw();
  const value = await eventually(
    () => alone.write(count).catch(() => 0),
    (one) => one > 0,
  );
  // What was refused was not made: it had not come to its commit.
  assert.equal(value, start + 2);
  assert.equal(await eventually(() => counted(alone).catch(() => 0), Boolean), start + 2);
});

test('a server that stands still with the lock of writes loses it, and what it wrote with it', {
  skip,
}, async (t) => {
  const schema = newSchema();
  const directory = temporaryDirectory();
  const other = spawn(
    process.execPath,
    [join(import.meta.dirname, 'holder.ts'), directory.path, postgres.url({ schema })],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const exited = once(other, 'exit');
  t.after(async () => {
    other.kill('SIGKILL');
    await exited;
    directory[Symbol.dispose]();
  });
  await Promise.race([once(other.stdout, 'data'), exited.then(() => assert.fail('it did not start'))]);
  other.kill('SIGSTOP');
  const own = temporaryDirectory();
  // It finds the lock held, and waits.
  const store = await openStore(own.path, { database: postgres.url({ schema }) });
  t.after(async () => {
    await store.close();
    own[Symbol.dispose]();
  });
  assert.equal(await store.write(count), 20_001);
  other.kill('SIGCONT');
  // Its write is run again, behind this one.
  await eventually(
    () => counted(store),
    (value) => value === 20_002,
  );
});

interface Proxy {
  port: number;
  readonly cuts: number;
  /** Passes on what has this text in it, and cuts instead of answering. */
  cutAnswerTo(text: string): void;
  cutBefore(text: string): void;
  /** Takes connections and passes nothing on, as a host that is gone, until `thaw`. */
  freeze(): void;
  thaw(): void;
}

/** Between a store and a socket of PostgreSQL, with a hand on the wire. */
async function startProxy(t: TestContext, socket: string): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let cuts = 0;
  let isFrozen = false;
  let cutting: { text: string; isSeen: boolean } | undefined;
  const server = createServer((client) => {
    const upstream = connect(socket);
    for (const one of [client, upstream]) {
      sockets.add(one);
      if (isFrozen) one.pause();
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        client.destroy();
        upstream.destroy();
      });
    }
    let isCut = false;
    client.on('data', (data) => {
      if (cutting && data.includes(cutting.text)) {
        const { isSeen } = cutting;
        cutting = undefined;
        isCut = true;
        cuts += 1;
        if (!isSeen) return void client.destroy();
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (isCut) client.destroy();
      else client.write(data);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const one of sockets) one.destroy();
    server.close();
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    get cuts() {
      return cuts;
    },
    cutAnswerTo: (text) => {
      cutting = { text, isSeen: true };
    },
    cutBefore: (text) => {
      cutting = { text, isSeen: false };
    },
    freeze() {
      isFrozen = true;
      for (const one of sockets) one.pause();
    },
    thaw() {
      isFrozen = false;
      for (const one of sockets) one.resume();
    },
  };
}
