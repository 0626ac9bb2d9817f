import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { sql } from 'kysely';
import { appendAuditEntry } from '../../src/store/audit/audit.ts';
import type { Change, Store, Tx } from '../../src/store/engine/index.ts';
import { insertRow, listRows, updateRows } from '../../src/store/engine/rows.ts';
import { becomes, physics } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { everyKind, openTestStore, testEntry, testOnFile } from '../support/store.ts';

const uid = async (db: Store['read']) => {
  const of = db.selectFrom('counters').select('value').where('name', '=', 'uid');
  return (await of.executeTakeFirstOrThrow()).value;
};

test('writes run one after the other: what each read still holds when it writes', async () => {
  await using store = await openTestStore();
  let running = 0;
  await Promise.all(
    Array.from({ length: 50 }, () =>
      store.write(async ({ db }) => {
        running++;
        assert.equal(running, 1);
        const value = await uid(db);
        await updateRows(db, 'counters', { name: 'uid' }, { value: value + 1 });
        running--;
      }),
    ),
  );
  assert.equal(await uid(store.read), 20_050);
});

test('a write that fails changes nothing, announces nothing, and does not hold up the next', async () => {
  await using store = await openTestStore();
  const seen: Change[] = [];
  store.onChange(everyKind, (changes) => void seen.push(...changes));
  const failing = store.write(async (tx) => {
    await appendAuditEntry(tx, testEntry('a'));
    tx.changed({ kind: 'cluster', clusterId: 'a' });
    throw new Error('no');
  });
  const next = store.write(async (tx) => {
    await appendAuditEntry(tx, testEntry('b'));
    tx.changed({ kind: 'cluster', clusterId: 'b' });
  });
  await assert.rejects(failing, /no/);
  await next;
  const rows = await listRows(store.read, 'audit_entries', {});
  assert.deepEqual(fieldsOf(rows, 'seq', 'target'), [[1, 'b']]);
  assert.deepEqual(seen, [{ kind: 'cluster', clusterId: 'b' }]);
});

test('a query that its write did not wait for is refused, and is in no other write', async () => {
  await using store = await openTestStore();
  const late = await store.write(async (tx) => {
    return { append: () => appendAuditEntry(tx, testEntry('late')) };
  });
  await assert.rejects(late.append());
  assert.deepEqual(await listRows(store.read, 'audit_entries', {}), []);
});

test('a change is announced when it can be read, and no more after one stops listening', async () => {
  await using store = await openTestStore();
  const seen: number[] = [];
  const stop = store.onChange(everyKind, () => {
    void listRows(store.read, 'audit_entries', {}).then((rows) => seen.push(rows.length));
  });
  const write = () =>
    store.write(async (tx) => {
      await appendAuditEntry(tx, testEntry('a'));
      tx.changed({ kind: 'cluster', clusterId: 'a' });
    });
  await write();
  await becomes(() => seen.length, 1);
  stop();
  await write();
  await new Promise((done) => setTimeout(done, 10));
  assert.deepEqual(seen, [1]);
});

test('reads go on while a write is under way, and see the state before it', async () => {
  await using store = await openTestStore();
  await store.write(async (tx) => {
    await appendAuditEntry(tx, testEntry('a'));
    assert.deepEqual(await listRows(store.read, 'audit_entries', {}), []);
  });
  assert.equal((await listRows(store.read, 'audit_entries', {})).length, 1);
});

testOnFile(
  'while another program holds the file, a write is refused as service_unavailable and changes nothing',
  async () => {
    await using opened = await openTestStore();
    // Not the seconds that it would wait otherwise.
    await opened.store.write(({ db }) => sql`pragma busy_timeout = 20`.execute(db));
    const other = new Database(join(opened.dataDir, 'andromeda.db'));
    other.exec('begin immediate');
    await assert.rejects(
      opened.store.write((tx) => appendAuditEntry(tx, testEntry('a'))),
      { code: 'service_unavailable' },
    );
    other.exec('rollback');
    other.close();
    await opened.store.write((tx) => appendAuditEntry(tx, testEntry('b')));
    const rows = await listRows(opened.store.read, 'audit_entries', {});
    assert.deepEqual(fieldsOf(rows, 'target'), ['b']);
  },
);

test('an audit entry needs someone who did it', async () => {
  await using opened = await openTestStore();
  await assert.rejects(
    opened.store.write((tx) => appendAuditEntry(tx, { ...testEntry('a'), actorUserId: 'user_of_nobody' })),
    /foreign key/i,
  );
});

const fillDisk = ({ db }: Tx) => sql`update users set display_name = ${'x'.repeat(1_000_000)}`.execute(db);

testOnFile('a full disk is said to be one, and what was there stays', async () => {
  await using store = await openTestStore(physics);
  await store.write(({ db }) => sql`pragma max_page_count = 1`.execute(db));
  await assert.rejects(store.write(fillDisk), { code: 'service_unavailable' });
  const { rows } = await sql<{
    count: number;
  }>`select count(*) as count from users where display_name like 'xx%'`.execute(store.read);
  assert.equal(rows[0]?.count, 0);
  await store.write(({ db }) => sql`pragma max_page_count = 1000000`.execute(db));
  await store.write(({ db }) => sql`update users set display_name = 'again'`.execute(db));
});

testOnFile(
  'where the disk is full for one of those that share a commit, the others are done, and done once',
  async () => {
    await using store = await openTestStore(physics);
    const { rows } = await store.write(({ db }) =>
      sql<{ page_count: number }>`pragma page_count`.execute(db),
    );
    await store.write(({ db }) =>
      sql`pragma max_page_count = ${sql.lit((rows[0]?.page_count ?? 0) + 20)}`.execute(db),
    );
    const count = (name: string) => store.write(({ db }) => insertRow(db, 'counters', { name, value: 1 }));
    const fill = () => store.write(fillDisk);
    const settled = await Promise.allSettled([count('a'), fill(), count('b'), count('a'), count('c')]);
    assert.deepEqual(fieldsOf(settled, 'status'), [
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    const made = await listRows(store.read, 'counters', { value: 1 }, 'name');
    assert.deepEqual(fieldsOf(made, 'name'), ['a', 'b', 'c']);
  },
);

test('a commit is announced as this server’s own; there is no other one to send messages to', async () => {
  await using store = await openTestStore();
  const heard: unknown[] = [];
  store.onChange(everyKind, (changes, { from }) => void heard.push(changes, from));
  store.messages.on('error', (body) => void heard.push(body));
  await store.messages.send('error', { hello: 'all' });
  await store.write(async (tx) => tx.changed({ kind: 'everything' }));
  assert.deepEqual(heard, [[{ kind: 'everything' }], 'here']);
  await assert.rejects(store.messages.send('long', { text: 'x'.repeat(4096) }), /longer than 4096 bytes/);
  assert.match(store.server.id, /^server_[0-9A-Z]{26}$/);
  await using other = await openTestStore();
  assert.notEqual(other.store.server.id, store.server.id);
});
