/** A PostgreSQL whose connections are cut, that stops, or that another server holds: nothing is lost, and nothing done twice. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { BusinessDeps } from '../../../src/api/business/operation.ts';
import { registerSshKey } from '../../../src/api/business/ssh-keys.ts';
import { findBreak } from '../../../src/domain/audit/audit.ts';
import { withRedaction } from '../../../src/store/audit/audit.ts';
import { createInstallation } from '../../../src/store/data-dir/lab.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { inPart, tryOut } from '../../../src/store/engine/index.ts';
import { prepared } from '../../../src/store/engine/queries.ts';
import { becomes, eventually, physics } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { userId } from '../../support/store.ts';
import { count, counted, countsAgain, newSchema, open } from './counting.ts';
import { connect, postgres, test, usePostgres } from './server.ts';

usePostgres();

const direct = (schema = newSchema()) => postgres.url({ schema });

/** Ends the connection of the write under way, once PostgreSQL is done with the statements that were sent. */
const cutWrite = () =>
  eventually(
    () =>
      postgres.query(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity where state = 'idle in transaction'",
      ),
    (ended) => ended.length > 0,
  );

test('writes that share a commit whose connection is cut before it are all made, each once', async (t) => {
  const store = await open(t, direct());
  const start = await counted(store);
  let runs = 0;
  const writes = [1, 2, 3, 4].map((number) =>
    store.write(async (tx) => {
      const value = await count(tx);
      if (number === 3 && ++runs === 1) await cutWrite();
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

test('of a commit whose answer is lost, it is asked what became of it', async (t) => {
  const proxy = await startProxy(t, join(postgres.directory, '.s.PGSQL.5432'));
  const store = await open(t, through(newSchema(), proxy));
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

test('a key is registered in two round trips, and what waits shares a commit', async (t) => {
  const proxy = await startProxy(t, join(postgres.directory, '.s.PGSQL.5432'));
  const store = await open(t, through(newSchema(), proxy));
  await createInstallation(store, physics, 'test');
  const caller = { userId: await userId(store, 'ada@physics.example'), sourceAddress: '' };
  const register = () => {
    const command = { idempotencyKey: randomUUID(), auditReason: 'test' };
    const body = { public_key: newPublicKey() };
    return registerSshKey({ store } as BusinessDeps, { caller, body, command, now: Date.now() } as never);
  };
  const before = { rounds: 0, commits: 0 };
  const since = () => {
    const { rounds, commits } = proxy;
    const seen = { rounds: rounds - before.rounds, commits: commits - before.commits };
    Object.assign(before, { rounds, commits });
    return seen;
  };
  // A connection is made, and one that listens asks something now and then.
  await register();
  const fewest = { rounds: Infinity, commits: Infinity };
  for (let attempt = 0; attempt < 5; attempt++) {
    since();
    await register();
    const { rounds, commits } = since();
    fewest.rounds = Math.min(fewest.rounds, rounds);
    fewest.commits = Math.min(fewest.commits, commits);
  }
  assert.deepEqual(fewest, { rounds: 2, commits: 1 });
  // One at once, and those that come while it is under way.
  since();
  const later: Promise<unknown>[] = [];
  await store.write(async (tx) => {
    later.push(...Array.from({ length: 8 }, register));
    await count(tx);
  });
  await Promise.all(later);
  assert.equal(since().commits, 1);
  const trail = await store.read.selectFrom('audit_entries').selectAll().orderBy('seq').execute();
  assert.equal(findBreak({ seq: 0, hash: '' }, trail.map(withRedaction)), undefined);
});

test('a statement that nothing waited for takes back its own write where it fails, and no other', async (t) => {
  const store = await open(t, direct());
  const start = await counted(store);
  const insert = prepared((db, name: string) => db.insertInto('counters').values({ name, value: 1 }));
  const failing = () =>
    store.write(async (tx) => {
      await insert(tx.db, 'twice');
      await insert(tx.db, 'twice');
      return count(tx);
    });
  const writes = [store.write(count), failing(), store.write(count)];
  const [first, second, third] = await Promise.allSettled(writes);
  assert.deepEqual(
    [first, third].map((one) => one?.status === 'fulfilled' && one.value),
    [start + 1, start + 2],
  );
  assert.match(`${second?.status === 'rejected' && second.reason}`, /duplicate key/);
  const last = store.write(({ db }) => insert(db, 'uid'));
  await assert.rejects(last, /duplicate key/, 'the commit says so');
  // A part of what is tried out.
  await tryOut(store, async (tx) => {
    await assert.rejects(
      inPart(tx, () => insert(tx.db, 'uid')),
      /duplicate key/,
    );
    await count(tx);
  });
  assert.equal(await counted(store), start + 2);
});

const through = (schema: string, ...proxies: Proxy[]) =>
  `postgres://postgres@${proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')}/andromeda?sslmode=disable&schema=${schema}`;

test('a host that falls silent holds up no one for long, and is used again when it speaks; the next one is taken meanwhile', async (t) => {
  const socket = join(postgres.directory, '.s.PGSQL.5432');
  const [only, former, next] = [
    await startProxy(t, socket),
    await startProxy(t, socket),
    await startProxy(t, socket),
  ];
  const alone = await open(t, through(newSchema(), only));
  const withNext = await open(t, through(newSchema(), former, next));
  const [start, other] = [await counted(alone), await counted(withNext)];
  assert.equal(await alone.write(count), start + 1);
  assert.equal(await withNext.write(count), other + 1);
  // One that starts there waits for another that brings the schema up to date.
  const schema = newSchema();
  const lock = `pg_advisory_lock(1634626675, hashtext('${schema}'))`;
  const holder = await connect(t, { connectionString: postgres.url() });
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
  const began = performance.now();
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
    countsAgain(withNext),
    eventually(() => counted(withNext).catch(() => 0), Boolean),
    starting,
    // One that starts finds the next one as well.
    open(t, through(newSchema(), former, next)),
  ]);
  const seconds = (performance.now() - began) / 1000;
  // That is before the first query would be given up by itself.
  assert.ok(seconds < 30, `${seconds} s`);
  only.thaw();
  // What was refused was not made: it had not come to its commit.
  assert.equal(await countsAgain(alone), start + 2);
  assert.equal(await eventually(() => counted(alone).catch(() => 0), Boolean), start + 2);
});

test('a write that waits for the lock in vain says so, and so do those behind it', async (t) => {
  const schema = newSchema();
  const store = await open(t, direct(schema));
  await store.write(count);
  const holder = await connect(t, { connectionString: postgres.url() });
  await holder.query('begin');
  await holder.query(`select * from ${schema}.store_version for update`);
  const writes = [1, 2, 3].map(() => store.write(count));
  const refused = Promise.all(
    writes.map((write) =>
      assert.rejects(write, ({ code, message, cause }) => {
        assert.deepEqual(
          [code, (cause as { sqlState: string }).sqlState],
          ['service_unavailable', '57014'],
          message,
        );
        return true;
      }),
    ),
  );
  // What PostgreSQL does itself after 15 s.
  await eventually(
    () =>
      postgres.query(
        "select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'store_version'",
      ),
    (cancelled) => cancelled.length > 0,
  );
  await refused;
  await holder.query('rollback');
  await store.write(count);
});

test('a server that stands still with the lock of writes loses it, and what it wrote with it', async (t) => {
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
  // It finds the lock held, and waits.
  const store = await open(t, direct(schema));
  assert.equal(await store.write(count), 20_001);
  other.kill('SIGCONT');
  // Its write is run again, behind this one.
  await becomes(() => counted(store), 20_002);
});

interface Proxy {
  port: number;
  readonly cuts: number;
  /** How often a client sent while no answer was outstanding, and so waited for one. */
  readonly rounds: number;
  readonly commits: number;
  /** Passes on what has this text in it, and cuts instead of answering. */
  cutAnswerTo(text: string): void;
  cutBefore(text: string): void;
  /** Takes connections and passes nothing on, as a host that is gone, until `thaw`. */
  freeze(): void;
  thaw(): void;
}

const answerMs = 5;

/** Calls back with the type of each message of PostgreSQL's protocol; the first one of a client has none. */
function readMessages(isTyped: boolean, onMessage: (type: string) => void): (data: Buffer) => void {
  let rest = Buffer.alloc(0);
  let head = isTyped ? 1 : 0;
  return (data) => {
    rest = Buffer.concat([rest, data]);
    while (rest.length >= head + 4 && rest.length >= head + rest.readInt32BE(head)) {
      if (head > 0) onMessage(String.fromCharCode(rest[0] ?? 0));
      rest = rest.subarray(head + rest.readInt32BE(head));
      head = 1;
    }
  };
}

/** Between a store and a socket of PostgreSQL, with a hand on the wire. */
async function startProxy(t: TestContext, socket: string): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let cuts = 0;
  let rounds = 0;
  let commits = 0;
  let isFrozen = false;
  let cutting: { text: string; isSeen: boolean } | undefined;
  const server = createServer((client) => {
    const upstream = connectTo(socket);
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
    // The answer to how it logs in.
    let outstanding = 1;
    const asked = readMessages(false, (type) => {
      if (type !== 'Q' && type !== 'S') return;
      if (outstanding === 0) rounds += 1;
      outstanding += 1;
    });
    const answered = readMessages(true, (type) => {
      if (type === 'Z') outstanding -= 1;
    });
    client.on('data', (data) => {
      asked(data);
      if (data.includes('; commit')) commits += 1;
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
      if (isCut) return void client.destroy();
      // What is sent in one go has arrived before it is answered.
      setTimeout(() => {
        answered(data);
        client.write(data);
      }, answerMs);
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
    get rounds() {
      return rounds;
    },
    get commits() {
      return commits;
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
