/** What the log says of access and keys that lapse, and how what has expired is deleted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPatientClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startSweeps } from '../../src/service/compose/leader.ts';
import { warnOfLapses } from '../../src/service/compose/permission-ends.ts';
import { findRow, insertRow } from '../../src/store/engine/rows.ts';
import { recordSignIn } from '../../src/store/people/people.ts';
import { becomes, physics } from '../support/app.ts';
import { openTestStore, userId } from '../support/store.ts';

const day = 86_400_000;

test('the log says whose access has lapsed and whose will within a week', async () => {
  const clock = { now: Date.now() };
  const access = { maxHoursWithoutSignIn: 30 * 24 };
  await using store = await openTestStore(physics, () => clock.now, access);
  const lines: string[] = [];
  const log = createLogger('warn', (line) => lines.push(line));
  clock.now += 25 * day;
  await recordSignIn(store, await userId(store, 'ada@physics.example'), clock.now);
  const said = async () => {
    lines.length = 0;
    const stop = warnOfLapses(store, log);
    await becomes(() => lines.length > 0, true);
    stop();
    return JSON.parse(lines[0] ?? '');
  };
  const soon = await said();
  assert.equal(soon.event, 'access.lapsing');
  assert.equal(soon.people, 4);
  assert.match(soon.message, /^Soon the access of 4 people will lapse, without a sign-in for 30 days\./);
  clock.now += 6 * day;
  const { event, people, userIds, message } = await said();
  assert.deepEqual([event, people, userIds.length], ['access.lapsed', 4, 4]);
  assert.match(
    message,
    /^Access of 4 people lapsed, without a sign-in for 30 days\. It comes back when they/,
  );
});

test('for what ends by its age, a jump of the clock counts after a day', () => {
  const host = { now: 1_000_000_000, uptime: 0 };
  const patient = createPatientClock({ now: () => host.now, uptime: () => host.uptime });
  const pass = (ms: number) => {
    host.now += ms;
    host.uptime += ms;
  };
  pass(day);
  assert.equal(patient(), host.now);
  host.now += 400 * day;
  assert.equal(patient(), host.now - 400 * day);
  pass(day / 2);
  assert.equal(patient(), host.now - 400 * day);
  host.now -= 400 * day;
  assert.equal(patient(), host.now, 'set right again');
  host.now -= 10 * day;
  assert.equal(patient(), host.now, 'back');
  host.now += 10 * day;
  assert.equal(patient(), host.now - 10 * day);
  pass(day);
  assert.equal(patient(), host.now, 'believed');
});

test('the first sign-in of an account is noted however new it is, and then one a minute', async () => {
  const clock = { now: Date.now() };
  await using store = await openTestStore(physics, () => clock.now);
  const ada = await userId(store, 'ada@physics.example');
  const noted = async () => (await findRow(store.read, 'users', { id: ada }))?.last_sign_in_at;
  assert.equal(await noted(), null);
  const first = clock.now + 1_000;
  await recordSignIn(store, ada, first);
  assert.equal(await noted(), new Date(first).toISOString());
  await recordSignIn(store, ada, first + 59_000);
  assert.equal(await noted(), new Date(first).toISOString());
  await recordSignIn(store, ada, first + 60_000);
  assert.equal(await noted(), new Date(first + 60_000).toISOString());
});

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
