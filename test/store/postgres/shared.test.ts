/** Several stores on one PostgreSQL: what each hears of the others, and what opening one asks of the database. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { createAdapter, repeatSeconds } from '../../../src/api/identity/issuer/adapter.ts';
import { findBreak } from '../../../src/domain/audit/audit.ts';
import { serverLifeMs } from '../../../src/domain/server.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { updateListedUsers } from '../../../src/store/access/access-list-users.ts';
import { acceptAccessLists, createAccessList, findManifest } from '../../../src/store/access/access-lists.ts';
import { appendAuditEntry, withRedaction } from '../../../src/store/audit/audit.ts';
import { createInstallation } from '../../../src/store/data-dir/lab.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { cached, cachedAs } from '../../../src/store/engine/cache.ts';
import { type Change, readChanges } from '../../../src/store/engine/changes.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import { listMembers } from '../../../src/store/organizations/memberships.ts';
import { findOrganizationBySlug } from '../../../src/store/organizations/organizations.ts';
import { systemUserId } from '../../../src/store/people/people.ts';
import { findToken, takeLead } from '../../../src/store/servers/leader.ts';
import { enterServer, renewServer } from '../../../src/store/servers/servers.ts';
import { alpha, eventually, physics } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { createPostgres, missingPostgres, type TestPostgres } from '../../support/postgres-server.ts';
import { letPass } from '../../support/servers.ts';
import { everyKind } from '../../support/store.ts';

const skip = missingPostgres() ?? false;
let postgres: TestPostgres;
before(async () => {
  if (!skip) postgres = await createPostgres();
});
after(() => postgres?.[Symbol.asyncDispose]());

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

const entry = (target: string) => ({
  actorUserId: systemUserId,
  operation: 'test',
  target,
  reason: 'r',
  sourceAddress: '',
  result: 'done',
});

test('servers that start at once on an empty database bring it up to date once', { skip }, async () => {
  await using opened = await openStores(3);
  const [first] = opened.stores;
  const columns = await postgres.query<{ data_type: string }>(
    `select distinct data_type from information_schema.columns where table_schema = $1 and table_name not like 'kysely%'`,
    [opened.schema],
  );
  assert.deepEqual(columns.map((one) => one.data_type).sort(), ['bigint', 'text']);
  assert.equal((await first?.read.selectFrom('users').select('id').execute())?.length, 1);
});

test('what one server commits, the others read at once, and hear of; messages come to the others only', {
  skip,
}, async () => {
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
    await eventually(
      async () => mine.length,
      (count) => count > 0,
    );
    mine.length = 0;
  }
  await a.write(async (tx) => {
    await appendAuditEntry(tx, entry('x'));
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

test('changes that are too many for notifications are announced as everything', { skip }, async () => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  const heard: Change[] = [];
  b.onChange(everyKind, (changes) => void heard.push(...changes));
  const write = (count: number) =>
    a.write(async (tx) => {
      for (let i = 0; i < count; i++) tx.changed({ kind: 'person', userId: `user_${i}` });
    });
  await write(1_000);
  await eventually(
    async () => heard.length,
    (count) => count === 1_000,
  );
  await write(10_000);
  await eventually(
    async () => heard.at(-1),
    (last) => last !== undefined && last.kind === 'everything',
  );
  assert.equal(heard.length, 1_001);
});

test('writers of several servers lose nothing, and the audit trail is one chain', { skip }, async () => {
  await using opened = await openStores(2);
  const rounds = 25;
  const writers = opened.stores.flatMap((store, server) =>
    Array.from({ length: 8 }, async (_, writer) => {
      for (let round = 0; round < rounds; round++) {
        await store.write(
          async (tx) => {
            const row = await tx.db.selectFrom('counters').select('value').executeTakeFirstOrThrow();
            await tx.db
              .updateTable('counters')
              .set({ value: row.value + 1 })
              .execute();
            await appendAuditEntry(tx, entry(`${server}/${writer}/${round}`));
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

test('no page of a list of members reads all users', { skip }, async (t) => {
  await using opened = await openStores(1);
  const [store] = opened.stores as [Store];
  const people = `from (select lpad(i::text, 26, '0') as id from generate_series(1, 5000) i) p`;
  const at = '2026-01-01T00:00:00.000Z';
  const client = new pg.Client(postgres.url({ schema: opened.schema }));
  client.on('error', () => {});
  await client.connect();
  t.after(() => client.end());
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

test('a server says that it is there while another one writes, and finds out that the lead is taken', {
  skip,
}, async () => {
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

test('a server whose listening connection was lost listens again, and counts everything as changed', {
  skip,
}, async () => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  const heard: Change[] = [];
  b.onChange(everyKind, (changes) => void heard.push(...changes));
  await postgres.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where query ~ '^\\s*(do |select version, pg_is_in_recovery)'",
  );
  await eventually(
    async () => heard.some((change) => change.kind === 'everything'),
    (isHeard) => isHeard,
  );
  await a.write(async (tx) => tx.changed({ kind: 'person', userId: 'user_after' }));
  await eventually(
    async () => heard.some((change) => change.kind === 'person' && change.userId === 'user_after'),
    (isHeard) => isHeard,
  );
});

test('what was not announced is found out', { skip }, async () => {
  await using opened = await openStores(1);
  const [store] = opened.stores as [Store];
  const heard: Change[] = [];
  store.onChange(everyKind, (changes) => void heard.push(...changes));
  await sql`update store_version set version = version + 1`.execute(store.read);
  await eventually(
    async () => heard,
    (changes) => changes.some((change) => change.kind === 'everything'),
  );
});

test('a database that sorts otherwise, or is not there, is refused in words without the password', {
  skip,
}, async () => {
  using directory = temporaryDirectory();
  await postgres.query("create database other template template0 locale 'C.UTF-8'");
  const url = (name: string) => postgres.url().replace('/andromeda?', `/${name}?`);
  await assert.rejects(openStore(directory.path, { database: url('other') }), {
    code: 'invalid_state',
    message: /its collation is C\.UTF-8.*locale 'C'/,
  });
  const secret = url('missing').replace('postgres@', 'postgres:correct-horse@');
  await assert.rejects(openStore(directory.path, { database: secret }), (error: Error) => {
    assert.match(error.message, /"missing" does not exist/);
    assert.doesNotMatch(`${error.stack} ${JSON.stringify(error.cause)}`, /correct-horse/);
    return true;
  });
});

test('a server reads what another one announces', () => {
  const changes: Change[] = [
    { kind: 'person', userId: 'u' },
    { kind: 'person', userId: 'u', permissionEnd: '2030-01-01T00:00:00.000Z' },
    { kind: 'organization', organizationId: 'o' },
    { kind: 'cluster', clusterId: 'c' },
    { kind: 'report', clusterId: 'c' },
    { kind: 'browsers', userId: 'u' },
    { kind: 'sessions', userId: 'u' },
    { kind: 'requests', userId: 'u', organizationId: 'o' },
    { kind: 'service' },
    { kind: 'closing', sessionId: 's' },
    { kind: 'everything' },
    { kind: 'everything', wentBack: true },
    { kind: 'person', userId: 'u', commandId: 'command_1' },
  ];
  assert.deepEqual(readChanges(JSON.parse(JSON.stringify(changes))), changes);
});

test('what another version announces is read as far as it is known; what cannot be read counts as everything', () => {
  const all = [{ kind: 'everything' }];
  const told: [unknown, unknown][] = [
    [[{ kind: 'person', userId: 'u', more: 1 }], [{ kind: 'person', userId: 'u' }]],
    [[{ kind: 'room', roomId: 'r' }, { kind: 'service' }], [{ kind: 'service' }]],
    [[{ kind: 'room' }], []],
    [[{ kind: 'requests', userId: 'u' }], all],
    [[{ kind: 'person', userId: 7 }], all],
    [[{ kind: 'everything', wentBack: 'yes' }], all],
    [[{ kind: 'toString' }], []],
    [[{ userId: 'u' }], all],
    ...[null, 7, 'x', {}, [null], ['x'], [[]]].map((odd): [unknown, unknown] => [odd, all]),
  ];
  for (const [odd, expected] of told) assert.deepEqual(readChanges(odd), expected, JSON.stringify(odd));
});

test('notifications of whatever form end no server, and it receives what follows', { skip }, async () => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  const heard: Change[] = [];
  // Who throws keeps nothing from those behind it.
  b.onChange(everyKind, (changes) => {
    if (changes.some((change) => change.kind === 'person' && change.userId === 'odd')) throw new Error('odd');
  });
  b.onChange(everyKind, (changes) => {
    heard.push(...changes);
  });
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
  await eventually(
    async () => heard,
    (changes) =>
      changes.some((change) => change.kind === 'everything') &&
      changes.some((change) => change.kind === 'person' && change.userId === 'odd'),
  );
  await a.write(async (tx) => tx.changed({ kind: 'person', userId: 'user_after' }));
  await eventually(
    async () => heard,
    (changes) => changes.some((change) => change.kind === 'person' && change.userId === 'user_after'),
  );
});

async function channelOf(schema: string): Promise<string> {
  const [row] = await postgres.query<{ name: string }>(`select name from ${schema}.store_channel`);
  return row?.name ?? '';
}

test('a role without rights learns the name of no channel: it is in a table, and in no statement', {
  skip,
}, async () => {
  await using opened = await openStores(2);
  const [a, b] = opened.stores as [Store, Store];
  let heard = 0;
  b.messages.on('greeting', () => void heard++);
  await a.write(async (tx) => tx.changed({ kind: 'person', userId: 'user_1' }));
  await a.messages.send('greeting', {});
  await eventually(
    async () => heard,
    (count) => count > 0,
  );
  const channel = await channelOf(opened.schema);
  assert.match(channel, /^andromeda_[0-9a-f]{40}$/);
  const said = await postgres.query('select pid from pg_stat_activity where position($1 in query) > 0', [
    channel,
  ]);
  assert.deepEqual(said, []);
  await postgres.query(`create role stranger login; grant usage on schema ${opened.schema} to stranger`);
  const stranger = new pg.Client({ host: postgres.directory, user: 'stranger', database: 'andromeda' });
  await stranger.connect();
  try {
    await assert.rejects(
      stranger.query(`select name from ${opened.schema}.store_channel`),
      /permission denied/,
    );
  } finally {
    await stranger.end();
  }
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

test('where the database lost commits under a running server, it says so, and keeps nothing by their versions', {
  skip,
}, async (t) => {
  using directory = temporaryDirectory();
  await postgres.query("create database went template template0 locale 'C'");
  const lines: { event: string; version?: number; committed?: number }[] = [];
  const log = createLogger('info', (line) => void lines.push(JSON.parse(line)));
  const open = () =>
    openStore(directory.path, { database: postgres.url().replace('/andromeda?', '/went?'), log });
  const before = await open();
  let organizationId = '';
  try {
    await createInstallation(before, physics, 'test');
    organizationId = (await findOrganizationBySlug(before.read, 'physics'))?.id ?? '';
    await createAccessList(before, { id: alpha, organizationId, desiredGeneration: 1 });
    await updateListedUsers(before, organizationId);
    await acceptAccessLists(before, organizationId);
  } finally {
    await before.close();
  }
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
  await eventually(
    async () => heard,
    (changes) => changes.some((change) => 'wentBack' in change),
  );
  const line = lines.find(({ event }) => event === 'database.went_back');
  assert.equal((line?.committed ?? 0) - (line?.version ?? 0), 1);
  assert.equal(await giveShell(store, organizationId, 'bob', '/bin/new'), lost);
  assert.deepEqual(await manifestOf(store), { ...first, bob: '/bin/new' });
  assert.notEqual(await list(), known);
});

test('a refresh token that was used up answers again for its time on a server whose clock is another', {
  skip,
}, async (t) => {
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
