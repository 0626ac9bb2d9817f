import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { startSweeps } from '../../src/service/compose/leader.ts';
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
      await db
        .insertInto('issuer_records')
        .values({ model: 'Grant', id, payload: '{}', expires_at })
        .execute();
      await db
        .insertInto('limit_counts')
        .values({ name: 'n', key: id, failures: 1, at: 1, expires_at })
        .execute();
      await db
        .insertInto('console_sessions')
        .values({ id, ...console })
        .execute();
      await db
        .insertInto('open_sessions')
        .values({ id, ...open })
        .execute();
    }
  });
  const stop = startSweeps(store, { log: createLogger('silent'), now: Date.now });
  for (const table of tables)
    await becomes(async () => (await store.read.selectFrom(table).selectAll().execute()).length, 1);
  await stop();
  assert.equal((await store.read.selectFrom('console_sessions').select('id').executeTakeFirst())?.id, 'id-0');
});
