/** A PostgreSQL with a streaming standby: which of several hosts is taken, what the log says of it, and a switchover. */
import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';
import pg from 'pg';
import { createLogger } from '../../../src/lib/log.ts';
import { parsePostgresUrl } from '../../../src/lib/postgres-url.ts';
import { appendAuditEntry } from '../../../src/store/audit/audit.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import { Primary } from '../../../src/store/engine/postgres/primary.ts';
import { requireUsable } from '../../../src/store/engine/postgres/start.ts';
import { createReadinessCheck } from '../../../src/store/engine/readiness.ts';
import { listRows } from '../../../src/store/engine/rows.ts';
import { becomes, eventually } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { fieldsOf } from '../../support/fields.ts';
import { missingPostgres, signalsTo } from '../../support/postgres-server.ts';
import { everyKind, testEntry } from '../../support/store.ts';
import { count, counted, countsAgain, open } from './counting.ts';
import { createPair, portOf, socketOf, urlOf } from './pair.ts';
import { test } from './server.ts';

let pair: Awaited<ReturnType<typeof createPair>>;
before(async () => {
  if (!missingPostgres()) pair = await createPair();
});
after(() => pair?.[Symbol.asyncDispose]());

/** What a server that starts now writes into its log. */
async function warnings(): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const target = parsePostgresUrl(urlOf(socketOf(pair.primary)));
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

test('a clock that is off is warned of', async (t) => {
  const real = Date.now;
  t.mock.method(Date, 'now', () => real() - 3_600_000);
  const line = (await warnings()).find(({ event }) => event === 'database.clock');
  assert.equal(Math.round(Number(line?.['differsMs']) / 600_000), 6);
});

const openHere = (t: TestContext, schema: string) =>
  open(t, `${urlOf(socketOf(pair.primary))}&schema=${schema}`);

/** Commits that wait for a pair.standby. */
const waitingCommits = () =>
  pair.primary.query<{ pid: number }>("select pid from pg_stat_activity where wait_event = 'SyncRep'");

test('a write that no standby has is not answered, however its wait for one ends', async (t) => {
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
  await pair.setStandbys('nobody');
  t.after(() => pair.setStandbys(''));
  const write = (store: Store) =>
    store.write((tx) => {
      tx.changed({ kind: 'person', userId: 'user_1' });
      return count(tx);
    });
  const inDoubt = { code: 'service_unavailable', message: /it is not known whether it was/ };
  const refused = [assert.rejects(write(cut), inDoubt)];
  const [waiting] = await eventually(waitingCommits, (rows) => rows.length === 1);
  await pair.primary.query('select pg_terminate_backend($1)', [waiting?.pid]);
  refused.push(assert.rejects(write(left), inDoubt));
  refused.push(assert.rejects(createReadinessCheck(left)(), { code: 'service_unavailable' }));
  // What is read does not wait.
  assert.equal(await counted(left), leftAt);
  await Promise.all(refused);
  await pair.setStandbys('');
  for (const [values, made] of [
    [heard[0] ?? [], cutAt + 1],
    [heard[1] ?? [], leftAt + 1],
  ] as const)
    await becomes(() => values.includes(made), true);
  for (const [store, before] of [
    [cut, cutAt],
    [left, leftAt],
  ] as const) {
    const after = await countsAgain(store);
    // The one in doubt was made after all, and no other one.
    assert.equal(after, before + 2);
    assert.equal(await counted(store), after);
  }
});

test('a standby that stands still holds up writes and no reads, and all goes on when it does', async (t) => {
  await pair.waitForStandby();
  const store = await openHere(t, 'still');
  const isReady = createReadinessCheck(store);
  const before = await store.write(count);
  const signal = signalsTo(pair.standby);
  signal('SIGSTOP');
  t.after(() => pair.setStandbys(''));
  t.after(() => signal('SIGCONT'));
  const held = store.write(count).then(
    () => true,
    (error: { code?: unknown }) => error.code === 'service_unavailable',
  );
  await eventually(waitingCommits, (rows) => rows.length === 1);
  // One that waits for as long as it takes.
  const other = new pg.Client({
    ...{ host: pair.primary.directory, port: pair.primary.port, user: 'postgres', database: 'andromeda' },
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
  const after = await countsAgain(store);
  assert.ok(after >= before + 2);
  await becomes(() => isReady().catch(() => 'not yet'), undefined);
});

test('without a synchronous standby that is warned of; with one, a switchover loses nothing', async (t) => {
  assert.equal(await isWarnedOf('database.standby'), true);
  await pair.waitForStandby();
  assert.equal(await isWarnedOf('database.standby'), false);

  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { database: pair.url });
  let isOver = false;
  const acknowledged: string[] = [];
  const writers = [1, 2, 3, 4].map(async (writer) => {
    for (let round = 0; !isOver; round++) {
      const target = `${writer}/${round}`;
      await store
        .write((tx) => appendAuditEntry(tx, testEntry(target)))
        .then(() => acknowledged.push(target))
        .catch((error: { code?: unknown }) => assert.equal(error.code, 'service_unavailable'));
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
  await pair.primary.stop('SIGQUIT');
  await pair.standby.query('select pg_promote()');
  await more();
  isOver = true;
  await written;

  assert.equal(await portOf(store), pair.standby.port);
  const there = fieldsOf(await listRows(store.read, 'audit_entries', {}), 'target');
  assert.equal(new Set(there).size, there.length, 'nothing is there twice');
  assert.deepEqual(
    acknowledged.filter((target) => !there.includes(target)),
    [],
  );
});
