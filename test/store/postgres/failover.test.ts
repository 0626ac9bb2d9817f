/** A PostgreSQL with a streaming standby: which of several hosts is taken, what the log says of it, and a switchover. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { createLogger } from '../../../src/lib/log.ts';
import { parsePostgresUrl } from '../../../src/lib/postgres-url.ts';
import { appendAuditEntry } from '../../../src/store/audit/audit.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import type { Store, Tx } from '../../../src/store/engine/index.ts';
import { Primary } from '../../../src/store/engine/postgres/primary.ts';
import { requireUsable } from '../../../src/store/engine/postgres/start.ts';
import { createReadinessCheck } from '../../../src/store/engine/readiness.ts';
import { systemUserId } from '../../../src/store/people/people.ts';
import { eventually } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { freePorts } from '../../support/ports.ts';
import {
  createPostgres,
  missingPostgres,
  signalsTo,
  type TestPostgres,
} from '../../support/postgres-server.ts';
import { everyKind } from '../../support/store.ts';

const skip = missingPostgres() ?? false;
let primary: TestPostgres;
let standby: TestPostgres;
before(async () => {
  if (skip) return;
  const more = [
    ['wal_level', 'replica'],
    ['max_wal_senders', '4'],
    ['synchronous_commit', 'on'],
  ];
  const [port = 0] = await freePorts(1);
  primary = await createPostgres(undefined, { more });
  standby = await createPostgres(undefined, { more, port, of: primary });
});
after(async () => {
  await standby?.[Symbol.asyncDispose]();
  await primary?.[Symbol.asyncDispose]();
});

const socketOf = ({ directory, port }: TestPostgres) => `${directory}:${port}`;
const urlOf = (...hosts: string[]) =>
  `postgres://postgres@/andromeda?${new URLSearchParams({ host: hosts.join(',') })}`;
/** Nobody listens there. */
const down = () => join(primary.directory, 'nobody');

test('of several hosts, one that is down and one in recovery are left', { skip }, async () => {
  using directory = temporaryDirectory();
  const store = await openStore(directory.path, {
    database: urlOf(down(), socketOf(standby), socketOf(primary)),
  });
  try {
    const { rows } = await sql<{ port: string }>`select current_setting('port') as port`.execute(store.read);
    assert.deepEqual(rows, [{ port: `${primary.port}` }]);
  } finally {
    await store.close();
  }
  await assert.rejects(openStore(directory.path, { database: urlOf(down(), socketOf(standby)) }), {
    code: 'service_unavailable',
    message: /nobody: .*ENOENT.*; .*: it is a standby\.$/,
  });
});

/** What a server that starts now writes into its log. */
async function warnings(): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const target = parsePostgresUrl(urlOf(socketOf(primary)));
  const session = await new Primary(target).connect('reading');
  try {
    const log = createLogger('warn', (line) => void lines.push(JSON.parse(line)));
    await requireUsable(session, target, log);
    return lines;
  } finally {
    await session.close();
  }
}

const isWarnedOf = async (event: string) => (await warnings()).some((line) => line['event'] === event);

test('a clock that is off is warned of', { skip }, async (t) => {
  const real = Date.now;
  t.mock.method(Date, 'now', () => real() - 3_600_000);
  const line = (await warnings()).find(({ event }) => event === 'database.clock');
  assert.equal(Math.round(Number(line?.['differsMs']) / 600_000), 6);
});

async function openHere(t: TestContext, schema: string): Promise<Store> {
  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { database: `${urlOf(socketOf(primary))}&schema=${schema}` });
  t.after(async () => {
    await store.close();
    directory[Symbol.dispose]();
  });
  return store;
}

/** Adds one to what a write before it left. */
async function count({ db }: Tx): Promise<number> {
  const { value } = await db
    .updateTable('counters')
    .set((eb) => ({ value: eb('value', '+', 1) }))
    .where('name', '=', 'uid')
    .returning('value')
    .executeTakeFirstOrThrow();
  return value;
}

const counted = async ({ read }: Store) =>
  (await read.selectFrom('counters').select('value').where('name', '=', 'uid').executeTakeFirstOrThrow())
    .value;

/** Commits that wait for a standby. */
const waitingCommits = () =>
  primary.query<{ pid: number }>("select pid from pg_stat_activity where wait_event = 'SyncRep'");

test('a write that no standby has is not answered, however its wait for one ends', { skip }, async (t) => {
  const cut = await openHere(t, 'cut');
  const left = await openHere(t, 'left');
  const [cutAt, leftAt] = [await cut.write(count), await left.write(count)];
  // What each of the servers reads when it hears of its own write.
  const heard = [cut, left].map((store) => {
    const values: number[] = [];
    store.onChange(everyKind, async (changes) => {
      if (changes.some((change) => change.kind === 'person')) values.push(await counted(store));
    });
    return values;
  });
  await setStandbys('nobody');
  t.after(() => setStandbys(''));
  const write = (store: Store) =>
    store.write((tx) => {
      tx.changed({ kind: 'person', userId: 'user_1' });
      return count(tx);
    });
  const inDoubt = { code: 'service_unavailable', message: /it is not known whether it was/ };
  const refused = [assert.rejects(write(cut), inDoubt)];
  const [waiting] = await eventually(waitingCommits, (rows) => rows.length === 1);
  await primary.query('select pg_terminate_backend($1)', [waiting?.pid]);
  refused.push(assert.rejects(write(left), inDoubt));
  refused.push(assert.rejects(createReadinessCheck(left)(), { code: 'service_unavailable' }));
  // What is read does not wait.
  assert.equal(await counted(left), leftAt);
  await Promise.all(refused);
  await setStandbys('');
  for (const [values, made] of [
    [heard[0] ?? [], cutAt + 1],
    [heard[1] ?? [], leftAt + 1],
  ] as const)
    await eventually(
      async () => values,
      (all) => all.includes(made),
    );
  for (const [store, before] of [
    [cut, cutAt],
    [left, leftAt],
  ] as const) {
    const after = await eventually(
      () => store.write(count).catch(() => 0),
      (value) => value > 0,
    );
    // The one in doubt was made after all, and no other one.
    assert.equal(after, before + 2);
    assert.equal(await counted(store), after);
  }
});

test('a standby that stands still holds up writes and no reads, and all goes on when it does', {
  skip,
}, async (t) => {
  await waitForStandby();
  const store = await openHere(t, 'still');
  const isReady = createReadinessCheck(store);
  const before = await store.write(count);
  const signal = signalsTo(standby);
  signal('SIGSTOP');
  t.after(() => setStandbys(''));
  t.after(() => signal('SIGCONT'));
  const held = store.write(count).then(
    () => true,
    (error: { code?: unknown }) => error.code === 'service_unavailable',
  );
  await eventually(waitingCommits, (rows) => rows.length === 1);
  // One that waits for as long as it takes.
  const other = new pg.Client({
    ...{ host: primary.directory, port: primary.port, user: 'postgres', database: 'andromeda' },
    application_name: 'andromeda',
  });
  other.on('error', () => {});
  await other.connect();
  t.after(() => other.end());
  const waiting = other.query('create table waits (id bigint)');
  await eventually(
    () => store.findObstacle(),
    (found) => found?.reason === 'a synchronous standby is waited for, which does not answer',
  );
  await assert.rejects(isReady(), { code: 'service_unavailable' });
  assert.equal(await counted(store), before);
  signal('SIGCONT');
  assert.equal(await held, true);
  await waiting;
  const after = await eventually(
    () => store.write(count).catch(() => 0),
    (value) => value > 0,
  );
  assert.ok(after >= before + 2);
  await eventually(
    () =>
      isReady().then(
        () => true,
        () => false,
      ),
    Boolean,
  );
});

test('without a synchronous standby that is warned of; with one, a switchover loses nothing', {
  skip,
}, async (t) => {
  assert.equal(await isWarnedOf('database.standby'), true);
  await waitForStandby();
  assert.equal(await isWarnedOf('database.standby'), false);

  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { database: urlOf(socketOf(primary), socketOf(standby)) });
  let isOver = false;
  const acknowledged: string[] = [];
  const writers = [1, 2, 3, 4].map(async (writer) => {
    for (let round = 0; !isOver; round++) {
      const target = `${writer}/${round}`;
      const isMade = await store
        .write((tx) => appendAuditEntry(tx, { ...entry, target }))
        .then(() => true)
        .catch((error: { code?: unknown }) => {
          assert.equal(error.code, 'service_unavailable');
          return false;
        });
      if (isMade) acknowledged.push(target);
      // Others are to come to the processor, too.
      await new Promise((done) => setTimeout(done, 5));
    }
  });
  const written = Promise.all(writers);
  // It is asked of further on.
  written.catch(() => {});
  t.after(async () => {
    isOver = true;
    await written.catch(() => {});
    await store.close();
    directory[Symbol.dispose]();
  });
  const more = async () => {
    const before = acknowledged.length;
    const grown = eventually(
      async () => acknowledged.length,
      (count) => count >= before + 20,
    );
    await Promise.race([grown, written]);
  };
  await more();
  await primary.stop('SIGQUIT');
  await standby.query('select pg_promote()');
  await more();
  isOver = true;
  await written;

  const { rows } = await sql<{ port: string }>`select current_setting('port') as port`.execute(store.read);
  assert.deepEqual(rows, [{ port: `${standby.port}` }]);
  const entries = await store.read.selectFrom('audit_entries').select('target').execute();
  const there = entries.map(({ target }) => target);
  assert.equal(new Set(there).size, there.length, 'nothing is there twice');
  assert.deepEqual(
    acknowledged.filter((target) => !there.includes(target)),
    [],
  );
});

const entry = {
  actorUserId: systemUserId,
  operation: 'test',
  reason: 'r',
  sourceAddress: '',
  result: 'done',
};

/** Has commits wait for the standby from now on. */
async function waitForStandby(): Promise<void> {
  await setStandbys('*');
  const ask = "select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'";
  await eventually(
    () => primary.query(ask),
    (rows) => rows.length === 1,
  );
}

/** Those that commits wait for. */
async function setStandbys(names: string): Promise<void> {
  await primary.query(`alter system set synchronous_standby_names = '${names}'`);
  await primary.query('select pg_reload_conf()');
  // The checkpointer is who makes commits wait, or lets them go; behind a checkpoint it has read the setting.
  await primary.query('checkpoint');
}
