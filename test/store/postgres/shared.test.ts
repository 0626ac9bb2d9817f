/** Several stores on one PostgreSQL: what each hears of the others, and what opening one asks of the database. */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import pg from 'pg';
import { createAdapter, repeatSeconds } from '../../../src/api/identity/issuer/adapter.ts';
import { findBreak } from '../../../src/domain/audit/audit.ts';
import { serverLifeMs } from '../../../src/domain/server.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { findPersonOnCluster } from '../../../src/store/access/access-facts.ts';
import { updateListedUsers } from '../../../src/store/access/access-list-users.ts';
import { createAccessList, findManifest } from '../../../src/store/access/access-lists.ts';
import { findKubernetesAccess } from '../../../src/store/access/kubernetes-access.ts';
import { appendAuditEntry, withRedaction } from '../../../src/store/audit/audit.ts';
import { createInstallation } from '../../../src/store/data-dir/lab.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { cached, cachedAs } from '../../../src/store/engine/cache.ts';
import type { Change } from '../../../src/store/engine/changes.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import { updateRows } from '../../../src/store/engine/rows.ts';
import { createGrant } from '../../../src/store/organizations/grants.ts';
import { listMembers } from '../../../src/store/organizations/memberships.ts';
import { findOrganizationBySlug } from '../../../src/store/organizations/organizations.ts';
import { findToken, takeLead } from '../../../src/store/servers/leader.ts';
import { enterServer, renewServer } from '../../../src/store/servers/servers.ts';
import { alpha, becomes, eventually, physics } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { letPass } from '../../support/servers.ts';
import { everyKind, requireRow, testEntry, userId } from '../../support/store.ts';
import { connect, postgres, test, usePostgres } from './server.ts';

usePostgres();

let schemas = 0;
/** Stores on the same new schema, each with a data directory of its own. */
async function openStores(count: number): Promise<{ stores: Store[]; schema: string } & AsyncDisposable> {
  const schema = `s${++schemas}`;
  const stack = new AsyncDisposableStack();
  const opening = Array.from({ length: count }, async () => {
    const directory = stack.use(temporaryDirectory());
    const store = await openStore(directory.path, { database: postgres.url({ schema }) });
    stack.defer(() => store.close());
    return store;
  });
  const settled = await Promise.allSettled(opening);
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed) {
    await stack.disposeAsync();
    throw failed.reason;
  }
  return { stores: await Promise.all(opening), schema, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const isEverything = ({ kind }: Change) => kind === 'everything';
const isOf = (userId: string) => (change: Change) => change.kind === 'person' && change.userId === userId;

test('servers that start at once on an empty database bring it up to date once', async () => {
  await using opened = await openStores(3);
  const [first] = opened.stores;
  const columns = await postgres.query<{ data_type: string }>(
    `select distinct data_type from information_schema.columns where table_schema = $1 and table_name not like 'kysely%'`,
    [opened.schema],
  );
  assert.deepEqual(columns.map((one) => one.data_type).sort(), ['bigint', 'text']);
  assert.equal((await first?.read.selectFrom('users').select('id').execute())?.length, 1);
});

test('what one server commits, the others read at once, and hear of; messages come to the others only', async () => {
  await using opened = await openStores(3);
  const [a, b, c] = opened.stores as [Store, Store, Store];
  const heard = new Map<string, unknown[]>();
  for (const [name, store] of Object.entries({ a, b, c })) {
    const mine: unknown[] = [];
    heard.set(name, mine);
    store.onChange(everyKind, (changes, { from }) => void mine.push([from, ...changes]));
    store.messages.on('greeting', (body, from) => void mine.push([body, from]));
  }
  const make = () => Promise.resolve({});
  const before = await cached(b, 'x', make);
  assert.equal(await cached(b, 'x', make), before);
  await createInstallation(a, physics, 'test');
  assert.notEqual(await cached(b, 'x', make), before);
  assert.equal((await b.read.selectFrom('users').select('id').execute()).length, 6);
  for (const mine of heard.values()) {
    await becomes(() => mine.length > 0, true);
    mine.length = 0;
  }
  await a.write(async (tx) => {
    await appendAuditEntry(tx, testEntry('x'));
    tx.changed({ kind: 'person', userId: 'user_1' });
    tx.changed({ kind: 'organization', organizationId: 'org_1' });
  });
  await a.messages.send('greeting', { text: "it's me" });
  const expected = (from: 'here' | 'elsewhere') => [
    [from, { kind: 'person', userId: 'user_1' }, { kind: 'organization', organizationId: 'org_1' }],
  ];
  const message = [{ text: "it's me" }, a.server.id];
  for (const name of ['b', 'c']) {
    const all = await eventually(
      async () => heard.get(name) ?? [],
      (some) => some.length >= 2,
    );
    assert.deepEqual(all, [...expected('elsewhere'), message]);
  }
  assert.deepEqual(heard.get('a'), expected('here'));
});

test('changes that are too many for notifications are announced as everything', async () => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  const heard: Change[] = [];
  b.onChange(everyKind, (changes) => void heard.push(...changes));
  const write = (count: number) =>
    a.write(async (tx) => {
      for (let i = 0; i < count; i++) tx.changed({ kind: 'person', userId: `user_${i}` });
    });
  await write(1_000);
  await becomes(() => heard.length, 1_000);
  await write(10_000);
  await becomes(() => heard.at(-1)?.kind, 'everything');
  assert.equal(heard.length, 1_001);
});

test('writers of several servers lose nothing, and the audit trail is one chain', async () => {
  await using opened = await openStores(2);
  const rounds = 25;
  const writers = opened.stores.flatMap((store, server) =>
    Array.from({ length: 8 }, async (_, writer) => {
      for (let round = 0; round < rounds; round++) {
        await store.write(
          async (tx) => {
            const row = await tx.db.selectFrom('counters').select('value').executeTakeFirstOrThrow();
            await updateRows(tx.db, 'counters', {}, { value: row.value + 1 });
            await appendAuditEntry(tx, testEntry(`${server}/${writer}/${round}`));
          },
          { flush: round % 3 > 0 },
        );
      }
    }),
  );
  await Promise.all(writers);
  const [store] = opened.stores as [Store, Store];
  const entries = await store.read.selectFrom('audit_entries').selectAll().orderBy('seq').execute();
  assert.equal(entries.length, 16 * rounds);
  assert.equal(new Set(entries.map(({ target }) => target)).size, 16 * rounds);
  assert.equal(entries.at(-1)?.seq, 16 * rounds);
  const counter = await store.read.selectFrom('counters').select('value').executeTakeFirstOrThrow();
  assert.equal(counter.value, 20_000 + 16 * rounds);
  assert.equal(findBreak({ seq: 0, hash: '' }, entries.map(withRedaction)), undefined);
});

test('no page of a list of members reads all users', async (t) => {
  await using opened = await openStores(1);
  const [store] = opened.stores as [Store];
  const people = `from (select lpad(i::text, 26, '0') as id from generate_series(1, 5000) i) p`;
  const at = '2026-01-01T00:00:00.000Z';
  const client = await connect(t, { connectionString: postgres.url() });
  await client.query(`
    set search_path to ${opened.schema};
    insert into users (id, kind, primary_email, display_name, lifecycle_state, login_shell, created_at, updated_at)
      select 'user_' || id, 'person', id || '@physics.example', id, 'active', '/bin/bash', '${at}', '${at}' ${people};
    insert into organizations (id, slug, display_name, lifecycle_state, created_by_user_id, created_at, updated_at)
      select 'org_1', 'physics', 'Physics', 'active', min(id), '${at}', '${at}' from users;
    insert into memberships (org_id, user_id, role, lifecycle_state, created_at, updated_at, review_from)
      select 'org_1', 'user_' || id, 'member', 'active', '${at}', '${at}', '${at}' ${people};
    insert into organization_usernames (id, org_id, user_id, username, source, lifecycle_state, created_at)
      select 'name_' || id, 'org_1', 'user_' || id, 'p' || id, 'operator', 'reserved', '${at}' ${people};
    analyze`);
  const query = t.mock.method(pg.Client.prototype, 'query');
  assert.equal((await listMembers(store.read, 'org_1')).length, 5_000);
  const asked = query.mock.calls.map(({ arguments: [one] }) => one as unknown as pg.QueryConfig);
  query.mock.restore();
  const pages = asked.filter(({ text }) => /from "memberships"/.test(text ?? ''));
  assert.equal(pages.length, 11);
  for (const { text, values } of pages) {
    const { rows } = await client.query(`explain ${text}`, values);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.match(plan, /Index Scan using users_pkey on users u.*\n.*Index Cond: \(id = m\.user_id\)/, plan);
  }
});

test('a server says that it is there while another one writes, and finds out that the lead is taken', async () => {
  await using opened = await openStores(2);
  const [one, two] = opened.stores as [Store, Store];
  for (const [name, store] of Object.entries({ one, two }))
    await store.write((tx) => enterServer(tx, { name, version: '1', directory: name, settings: {} }));
  const token = await one.write(takeLead);
  const renew = async () => (await renewServer(one)) && (await findToken(one));
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const long = two.write(async () => {
    begun.resolve();
    await held.promise;
  });
  await begun.promise;
  assert.equal(await renew(), token, 'without the lock of writes');
  held.resolve();
  await long;

  await letPass(one, one.server.id, serverLifeMs);
  let renewed: Promise<string> | undefined;
  await two.write(async (tx) => {
    assert.notEqual(await takeLead(tx), undefined);
    let isOver = false;
    renewed = renew().then(
      (found) => `has ${found}`,
      () => 'waited in vain',
    );
    renewed.then(() => {
      isOver = true;
    });
    const waits = 'select 1 from pg_locks where not granted';
    await eventually(
      async () => isOver || (await postgres.query(waits)).length > 0,
      (isSo) => isSo,
    );
  });
  assert.notEqual(await renewed, `has ${token}`, 'it said so in the middle of that');
});

test('what decides over a login, and over bindings, is of one moment, though a table was locked meanwhile', async (t) => {
  await using opened = await openStores(1);
  const [store] = opened.stores as [Store];
  await createInstallation(store, physics, 'test');
  const bob = await userId(store, 'bob@physics.example');
  const { organization_id: organizationId } = await requireRow(store.read, 'clusters', { id: alpha });
  const relation = 'kubernetes.admin' as const;
  const grant = { clusterId: alpha, userId: bob, grantedBy: bob, scope: null, roleId: null, expiresAt: null };
  await store.write((tx) => createGrant(tx, { ...grant, relation }));
  const login = async () => {
    const found = await findPersonOnCluster(store, alpha, bob);
    return [found?.facts.role, (found?.facts.permissions.length ?? 0) > 0];
  };
  const bindings = async () => {
    const cluster = { id: alpha, organizationId };
    const { members, grants } = await findKubernetesAccess(store, cluster, undefined, Date.now());
    return [members.find((one) => one.userId === bob)?.role ?? 'member', grants.length > 0];
  };
  const locker = await connect(t, { connectionString: postgres.url() });
  await locker.query(`set search_path to ${opened.schema}`);
  const waiting = async () =>
    (await locker.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")).rows;
  const cases = [
    { read: login, table: 'holdings' },
    { read: bindings, table: 'resource_grants' },
  ];
  for (const { read, table } of cases) {
    await locker.query(`update memberships set role = 'member' where user_id = '${bob}'`);
    const before = await read();
    assert.deepEqual(before, ['member', true]);
    await locker.query('begin');
    await locker.query(`lock table ${table} in access exclusive mode`);
    const reading = read();
    await eventually(waiting, (rows) => rows.length > 0);
    await locker.query(`update memberships set role = 'admin' where user_id = '${bob}'`);
    await locker.query(`delete from ${table} where user_id = '${bob}'`);
    await locker.query('commit');
    const found = await reading;
    const after = ['admin', false];
    assert.deepEqual(await read(), after);
    assert.ok(
      [before, after].some((moment) => isDeepStrictEqual(moment, found)),
      `${found}`,
    );
  }
});

test('a server whose listening connection was lost listens again, and counts everything as changed', async () => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  const heard: Change[] = [];
  b.onChange(everyKind, (changes) => void heard.push(...changes));
  await postgres.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where query ~ '^\\s*(do |select version, pg_is_in_recovery)'",
  );
  await becomes(() => heard.some(isEverything), true);
  await a.write(async (tx) => tx.changed({ kind: 'person', userId: 'user_after' }));
  await becomes(() => heard.some(isOf('user_after')), true);
});

test('what was not announced is found out', async () => {
  await using opened = await openStores(1);
  const [store] = opened.stores as [Store];
  const heard: Change[] = [];
  store.onChange(everyKind, (changes) => void heard.push(...changes));
  await sql`update store_version set version = version + 1`.execute(store.read);
  await becomes(() => heard.some(isEverything), true);
});

test('notifications of whatever form end no server, and it receives what follows', async () => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  const heard: Change[] = [];
  // Who throws keeps nothing from those behind it.
  b.onChange(everyKind, (changes) => {
    if (changes.some(isOf('odd'))) throw new Error('odd');
  });
  b.onChange(everyKind, (changes) => void heard.push(...changes));
  b.messages.on('greeting', () => {
    throw new Error('odd');
  });
  const another = 'server_of_another_version';
  const odd = [null, true, 0, -1, 1e300, 'NaN', [], [null], {}, { s: 1 }];
  const fields = ['v', 'c', 't', 'b', 'x'];
  const payloads = [
    '{',
    ...odd.map((one) => JSON.stringify(one)),
    ...odd.flatMap((one) => fields.map((f) => JSON.stringify({ s: another, t: 'observed', [f]: one }))),
    JSON.stringify({ s: another, c: [{ kind: 'person', userId: 'odd' }] }),
    JSON.stringify({ s: another, t: 'greeting', b: {} }),
  ];
  const channel = await channelOf(opened.schema);
  for (const payload of payloads) await postgres.query('select pg_notify($1, $2)', [channel, payload]);
  await becomes(() => heard.some(isEverything) && heard.some(isOf('odd')), true);
  await a.write(async (tx) => tx.changed({ kind: 'person', userId: 'user_after' }));
  await becomes(() => heard.some(isOf('user_after')), true);
});

async function channelOf(schema: string): Promise<string> {
  const [row] = await postgres.query<{ name: string }>(`select name from ${schema}.store_channel`);
  return row?.name ?? '';
}

test('a role without rights learns the name of no channel: it is in a table, and in no statement', async (t) => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  let heard = 0;
  b.messages.on('greeting', () => void heard++);
  await a.write(async (tx) => tx.changed({ kind: 'person', userId: 'user_1' }));
  await a.messages.send('greeting', {});
  await becomes(() => heard > 0, true);
  const channel = await channelOf(opened.schema);
  assert.match(channel, /^andromeda_[0-9a-f]{40}$/);
  const said = await postgres.query('select pid from pg_stat_activity where position($1 in query) > 0', [
    channel,
  ]);
  assert.deepEqual(said, []);
  await postgres.query(`create role stranger login; grant usage on schema ${opened.schema} to stranger`);
  const stranger = await connect(t, { host: postgres.directory, user: 'stranger', database: 'andromeda' });
  await assert.rejects(
    stranger.query(`select name from ${opened.schema}.store_channel`),
    /permission denied/,
  );
});

const manifestOf = async (store: Store) => {
  const manifest = await findManifest(store, alpha);
  return Object.fromEntries((manifest?.accounts ?? []).map(({ username, shell }) => [username, shell]));
};

/** The next version of an organization's list, in which a person has another shell. */
const giveShell = (store: Store, organizationId: string, username: string, shell: string) =>
  store.write(async ({ db }) => {
    const { version } = await db
      .updateTable('organization_access_lists')
      .set((eb) => ({ version: eb('version', '+', 1) }))
      .where('org_id', '=', organizationId)
      .returning('version')
      .executeTakeFirstOrThrow();
    await db
      .updateTable('access_list_users')
      .set({ shell, since_version: version })
      .where('username', '=', username)
      .where('until_version', 'is', null)
      .execute();
    return version;
  });

test('where the database lost commits under a running server, it says so, and keeps nothing by their versions', async (t) => {
  using directory = temporaryDirectory();
  await postgres.query("create database went template template0 locale 'C'");
  const lines: { event: string; version?: number; committed?: number }[] = [];
  const log = createLogger('info', (line) => void lines.push(JSON.parse(line)));
  const open = () =>
    openStore(directory.path, { database: postgres.url().replace('/andromeda?', '/went?'), log });
  const before = await open();
  await createInstallation(before, physics, 'test');
  const organizationId = (await findOrganizationBySlug(before.read, 'physics'))?.id ?? '';
  await createAccessList(before, { id: alpha, organizationId, desiredGeneration: 1 });
  await updateListedUsers(before, organizationId);
  await before.close();
  await postgres.query('create database went_before template went');

  const store = await open();
  t.after(() => store.close());
  const heard: Change[] = [];
  store.onChange(everyKind, (changes) => void heard.push(...changes));
  const first = await manifestOf(store);
  const lost = await giveShell(store, organizationId, 'ada', '/bin/lost');
  assert.deepEqual(await manifestOf(store), { ...first, ada: '/bin/lost' });
  const list = () => cachedAs(store, { key: 'members', version: '7' }, async () => ({}));
  const known = await list();
  assert.equal(await list(), known);

  await postgres.query('alter database went allow_connections false');
  await postgres.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'went'");
  await postgres.query('alter database went rename to went_lost');
  await postgres.query('alter database went_before rename to went');
  await becomes(() => heard.some((change) => 'wentBack' in change), true);
  const line = lines.find(({ event }) => event === 'database.went_back');
  assert.equal((line?.committed ?? 0) - (line?.version ?? 0), 1);
  assert.equal(await giveShell(store, organizationId, 'bob', '/bin/new'), lost);
  assert.deepEqual(await manifestOf(store), { ...first, bob: '/bin/new' });
  assert.notEqual(await list(), known);
});

test('a refresh token that was used up answers again for its time on a server whose clock is another', async (t) => {
  await using opened = await openStores(2);
  const adapterOf = (store: Store, current: string | undefined) =>
    createAdapter(
      {
        store,
        rotation: { current: () => current, successorOf: () => 'next' },
        alreadyUsed: () => new Error('already used'),
      },
      'RefreshToken',
    );
  const [ahead, right] = opened.stores as [Store, Store];
  await adapterOf(right, undefined).upsert('used', { grantId: 'g' }, 3600);
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + (repeatSeconds + 30) * 1000 });
  await adapterOf(ahead, 'used').upsert('next', { grantId: 'g' }, 3600);
  t.mock.timers.reset();
  const again = await adapterOf(right, undefined).find('used');
  assert.ok(again);
  assert.equal(again['consumed'], undefined);
});
