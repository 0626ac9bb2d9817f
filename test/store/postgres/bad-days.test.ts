/** A PostgreSQL whose connections are cut, or that stops: nothing is lost, and nothing done twice. */
import assert from 'node:assert/strict';
import { updateRows } from '../../../src/store/engine/rows.ts';
import { becomes, eventually } from '../../support/app.ts';
import { everyKind } from '../../support/store.ts';
import { count, counted, newSchema, open } from './counting.ts';
import { postgres, test, usePostgres } from './server.ts';

usePostgres();

test('a write whose connection is cut before it is committed is made on another one, once', async (t) => {
  const store = await open(t, postgres.url({ schema: newSchema() }));
  const start = await counted(store);
  const endConnections = (where: string) =>
    postgres.query(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity where backend_type = 'client backend' and ${where}`,
    );
  const cutWrite = () => endConnections("state = 'idle in transaction'");
  for (const step of [0, 1, 2]) {
    let runs = 0;
    const value = await store.write(async (tx) => {
      runs += 1;
      const cut = async (at: number) => {
        if (runs === 1 && at === step) await eventually(cutWrite, (ended) => ended.length > 0);
      };
      await cut(0);
      const { value } = await tx.db.selectFrom('counters').select('value').executeTakeFirstOrThrow();
      await cut(1);
      await updateRows(tx.db, 'counters', {}, { value: value + 1 });
      await cut(2);
      return value + 1;
    });
    assert.equal(value, start + step + 1);
    // Cut behind its last statement, it is the commit that finds it, and asks what became of it.
    assert.equal(runs, 2);
    assert.equal(await counted(store), start + step + 1);
  }
  await endConnections('pid <> pg_backend_pid()');
  assert.equal(await store.write(count), start + 4, 'idle connections were cut');
});

test('while PostgreSQL is away, everything is refused at once in words; when it is back, it goes on by itself', async (t) => {
  const store = await open(t, postgres.url({ schema: newSchema() }));
  const start = await counted(store);
  let everything = 0;
  store.onChange(everyKind, (changes) => {
    if (changes.some((change) => change.kind === 'everything')) everything += 1;
  });
  // This one does not wait for its disk, and would lose what a real one has written.
  await postgres.query('checkpoint');
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
  await becomes(() => store.write(count).catch(() => 0), start + 1);
  assert.equal(await eventually(() => counted(store).catch(() => 0), Boolean), start + 1);
  await eventually(async () => everything, Boolean);
});
