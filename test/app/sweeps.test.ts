import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { startSweeps } from '../../src/service/compose/leader.ts';
import { insertRow } from '../../src/store/engine/rows.ts';
import { becomes, physics } from '../support/app.ts';
import { openTestStore, userId } from '../support/store.ts';

const tables = ['issuer_records', 'limit_counts', 'console_sessions', 'open_sessions'] as const;

test('what has expired is deleted, however much it is, and nothing else', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const ada = await userId(store, 'ada@physics.example');
  await store.write(async ({ db, now }) => {
    const past = new Date(now - 30 * 86_400_000).toISOString();
    const present = new Date(now).toISOString();
    for (let index = 0; index < 250; index += 1) {
      const [id, isOld] = [`id-${index}`, index > 0];
      const expires_at = isOld ? 1 : now * 2;
      const at = isOld ? past : present;
      const console = { user_id: ada, sealed: '', address: '', program: '', created_at: at, seen_at: at };
      const open = { entry: '{}', server_id: 'server_1', presumed_seq: 1, presumed_at: at };
      await insertRow(db, 'issuer_records', { model: 'Grant', id, payload: '{}', expires_at });
      await insertRow(db, 'limit_counts', { name: 'n', key: id, failures: 1, at: 1, expires_at });
      await insertRow(db, 'console_sessions', { id, ...console });
      await insertRow(db, 'open_sessions', { id, ...open });
    }
  });
  const stop = startSweeps(store, { log: createLogger('silent'), now: Date.now });
  for (const table of tables)
    await becomes(async () => (await store.read.selectFrom(table).selectAll().execute()).length, 1);
  await stop();
  assert.equal((await store.read.selectFrom('console_sessions').select('id').executeTakeFirst())?.id, 'id-0');
});
