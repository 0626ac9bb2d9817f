/** What a server that starts waits for, and what it refuses for an operator to mend. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { stringify } from 'yaml';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import { keySetText } from '../../../src/domain/key-rotation.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { makeSecretsKey } from '../../../src/lib/secrets-key.ts';
import { loadSshKey } from '../../../src/lib/ssh/public-key.ts';
import { createInstallation } from '../../../src/store/data-dir/lab.ts';
import { openStore, type StoreOptions } from '../../../src/store/data-dir/open-store.ts';
import { versionOf, viewPostgres } from '../../../src/store/engine/engine.ts';
import { createReadinessCheck } from '../../../src/store/engine/readiness.ts';
import { openSecrets } from '../../../src/store/servers/secrets.ts';
import { becomes, eventually, physics } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { fieldsOf } from '../../support/fields.ts';
import { beginProgram } from '../../support/program.ts';
import { keysOf } from '../../support/service-keys.ts';
import { open } from './counting.ts';
import { connect, postgres, test, usePostgres } from './server.ts';

usePostgres();

const lines: { event: string; message?: string }[] = [];
const log = createLogger('info', (line) => void lines.push(JSON.parse(line)));

/** As a server does, which waits where the database is away. */
async function start(database: string, options: StoreOptions = {}): Promise<void> {
  using directory = temporaryDirectory();
  await (await openStore(directory.path, { database, log, ...options })).close();
}

const elsewhere = (name: string, user = 'postgres') =>
  postgres.url().replace('postgres@', `${user}@`).replace('/andromeda?', `/${name}?`);

test('a user or a database that is not there or sorts otherwise, and authorities that cannot be read, are not waited for', async () => {
  await postgres.query("create database other template template0 locale 'C.UTF-8'");
  const secret = elsewhere('missing').replace('postgres@', 'postgres:correct-horse@');
  await assert.rejects(start(secret), ({ stack, cause }: Error) => {
    assert.doesNotMatch(`${stack} ${JSON.stringify(cause)}`, /correct-horse/);
    return true;
  });
  for (const [url, message] of [
    [secret, /"missing" does not exist/],
    [elsewhere('other'), /its collation is C\.UTF-8.*locale 'C'/],
    [elsewhere('andromeda', 'nobody'), /role "nobody" does not exist/],
    [
      postgres.url({ sslmode: 'verify-full', sslrootcert: '/not/there.pem' }),
      /sslrootcert: ENOENT.*there\.pem/,
    ],
  ] as const)
    await assert.rejects(start(url), { code: 'invalid_state', message });
});

test('a user without the right to make tables learns who has to own the database', async () => {
  await postgres.query('create role norights login');
  await postgres.query("create database closed template template0 locale 'C'");
  await assert.rejects(start(elsewhere('closed', 'norights')), {
    code: 'invalid_state',
    message: /permission denied for schema public\. .*alter database "closed" owner to "norights"/,
  });
  await postgres.query('alter database closed owner to norights');
  await start(elsewhere('closed', 'norights'));
  // What another one restored, it may not read.
  await postgres.query('create role another login');
  const other = elsewhere('closed', 'another');
  await assert.rejects(start(other), {
    code: 'invalid_state',
    message:
      /permission denied for table \w+\. Its user has to own all that is in it: .*restore the dump .*as "another"/,
  });
  await assert.rejects(start(other, { beside: true, unchanged: true }), {
    code: 'service_unavailable',
    message: /cannot be used: its user has no right to its tables/,
  });
});

test('a data directory that has served one installation serves no other, and none that is new', async () => {
  using directory = temporaryDirectory();
  const open = async (schema: string, options: StoreOptions = {}) =>
    (await openStore(directory.path, { database: postgres.url({ schema }), ...options })).close();
  await open('right');
  await open('right');
  await assert.rejects(open('empty'), {
    code: 'invalid_state',
    message:
      /has no people yet, and the one that was served from .* had an installation\. Is its name right\? .* move .*installation-id away first/,
  });
  await start(postgres.url({ schema: 'empty' }));
  await assert.rejects(open('empty'), {
    code: 'invalid_state',
    message: /has another installation than the one that was served from/,
  });
  await open('right');
  rmSync(join(directory.path, 'installation-id'));
  await open('empty');
  // One that was copied there has no ID yet.
  await postgres.query("delete from empty.counters where name = 'installation'");
  await postgres.query(
    `insert into empty.users select (jsonb_populate_record(u, '{"id":"usr_one","kind":"person","primary_email":"one@physics.example"}')).* from empty.users u`,
  );
  await open('empty');
});

test('a data directory with SQLite’s file of another installation joins none that is there', async () => {
  const lab = (slug: string): Lab => ({
    organizations: [
      {
        slug,
        name: slug,
        members: [{ email: `ada@${slug}.example`, role: 'owner', username: 'ada' }],
      },
    ],
  });
  const url = postgres.url({ schema: 'joined' });
  using first = temporaryDirectory();
  const there = await openStore(first.path, { database: url });
  await createInstallation(there, lab('physics'), 'test');
  await there.close();
  using directory = temporaryDirectory();
  const here = await openStore(directory.path);
  const enter = async () => (await openStore(directory.path, { database: url })).close();
  await createInstallation(here, lab('chemistry'), 'test');
  await here.close();
  await assert.rejects(enter(), {
    code: 'invalid_state',
    message:
      /has an installation, and .* is of another one, or was started alone\. .* move .* away first, and start with an empty one\.$/,
  });
  // What was copied there is of the same people.
  const ids = await postgres.query<{ id: string }>('select id from joined.organizations');
  const file = new Database(join(directory.path, 'andromeda.db'));
  file.pragma('foreign_keys = off');
  file.prepare('update organizations set id = ?').run(ids[0]?.id);
  file.close();
  await enter();
});

test('a data directory that was started on SQLite, without people, joins no installation with its keys', async () => {
  const options = { database: postgres.url({ schema: 'enabled' }), secrets: keysOf(makeSecretsKey()) };
  using first = temporaryDirectory();
  const there = await openStore(first.path, options);
  await createInstallation(there, physics, 'test');
  const key = loadSshKey(join(first.path, 'host'));
  const secrets = await openSecrets(there, options.secrets);
  await secrets.findOrAdd('gateway-host', () => keySetText({ key: key.privateKey }));
  await there.close();
  using directory = temporaryDirectory();
  await (await openStore(directory.path)).close();
  const enter = async () => (await openStore(directory.path, options)).close();
  const file = join(directory.path, 'keys/gateway_host_ed25519');
  mkdirSync(join(directory.path, 'keys'));
  const own = loadSshKey(file);
  const refused = async () =>
    assert.rejects(enter(), ({ code, message }: Error & { code: string }) => {
      assert.equal(code, 'invalid_state');
      const both = `its host key is ${own.fingerprint}, and in the database ${key.fingerprint}.`;
      assert.ok(message.includes(both), message);
      return true;
    });
  await refused();
  // The database alone is moved away.
  for (const one of ['andromeda.db', 'andromeda.db-wal', 'andromeda.db-shm'])
    rmSync(join(directory.path, one), { force: true });
  await refused();
  writeFileSync(file, key.privateKey);
  await enter();
});

test('a database that any role may connect to is warned of', async () => {
  await postgres.query('create role owner login');
  await postgres.query("create database open owner owner template template0 locale 'C'");
  const said = async () => {
    lines.length = 0;
    await start(elsewhere('open', 'owner'));
    return lines.filter(({ event }) => event === 'database.open').map(({ message = '' }) => message);
  };
  const [message = '', ...more] = await said();
  assert.deepEqual(more, []);
  const statements = /Take that away: (.*)$/.exec(message)?.[1] ?? '';
  await postgres.query(statements);
  assert.deepEqual(await said(), []);
});

test('a database that takes no writes is refused in words', async (t) => {
  await postgres.query("create database fixed template template0 locale 'C'");
  await postgres.query('alter database fixed set default_transaction_read_only = on');
  await assert.rejects(start(elsewhere('fixed')), { code: 'invalid_state', message: /it takes no writes/ });
  // A server that was there before says so as well.
  await postgres.query("create database later template template0 locale 'C'");
  const store = await open(t, elsewhere('later'));
  await createReadinessCheck(store)();
  await postgres.query('alter database later set default_transaction_read_only = on');
  await postgres.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'later'");
  await eventually(
    () =>
      createReadinessCheck(store)().then(
        () => '',
        ({ message }: Error) => message,
      ),
    (message) => message.includes('it takes no writes: it is a standby, or was set to be read only'),
  );
});

test('a service that is stopped while it waits for the database ends with 0, and one line', async () => {
  using directory = temporaryDirectory();
  const config = join(directory.path, 'andromeda.yaml');
  const database = postgres.url({ host: join(directory.path, 'nobody') });
  writeFileSync(config, stringify({ dataDir: './data', database }));
  const child = beginProgram('serve', '--config', config);
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const ended = once(child, 'close');
  await becomes(() => said.includes('database.away') || child.exitCode !== null, true);
  child.kill('SIGTERM');
  assert.deepEqual((await ended).slice(0, 1), [0], said);
  const events = said
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(fieldsOf(events, 'event'), ['database.away', 'serve.stopped']);
  assert.equal(events[1].message, 'Stopped while it waited for the database.');
});

test('who holds a lock that a write waits for is named, and the disk is not blamed', async (t) => {
  const store = await open(t, postgres.url());
  const holder = await connect(t, { connectionString: postgres.url(), application_name: 'psql' });
  assert.equal((await store.findObstacle())?.detail, undefined);
  await holder.query('begin; update store_version set version = version');
  const ready = createReadinessCheck(store)();
  const obstacle = await eventually(
    () => store.findObstacle(),
    (found) => found?.detail !== undefined,
  );
  assert.equal(obstacle?.reason, 'another connection of it holds a lock');
  assert.match(
    obstacle?.detail ?? '',
    /^It is process (\d+) \(psql, idle in transaction for \d+ s\); select pg_terminate_backend\(\1\) ends it$/,
  );
  await assert.rejects(ready, {
    code: 'service_unavailable',
    message: 'The database cannot be written: another connection of it holds a lock.',
  });
  await holder.query('rollback');
  await createReadinessCheck(store)();
  const view = await viewPostgres(postgres.url());
  t.after(() => view.close());
  assert.ok(((await versionOf(view.reader)) ?? 0) > 0);
  await holder.query('begin; lock table store_version');
  await assert.rejects(versionOf(view.reader), {
    code: 'service_unavailable',
    message: /another connection of it has locked a table/,
  });
  await holder.query('rollback');
  await assert.rejects(view.reader.deleteFrom('leader').execute(), /read-only transaction|takes no writes/);
});

test('while another server brings the schema up to date, one waits, says so, and can be stopped', async (t) => {
  await postgres.query("create database busy template template0 locale 'C'");
  const holder = await connect(t, { connectionString: elsewhere('busy') });
  await holder.query("select pg_advisory_lock(1634626675, hashtext('public'))");
  const stopping = Promise.withResolvers<void>();
  const stopped = assert.rejects(
    start(elsewhere('busy'), { stopping: stopping.promise }),
    /Stopped while it waited for the database/,
  );
  await becomes(
    () =>
      lines.some(({ message }) =>
        /Another server is bringing the database .*; process \d+ of the role postgres has it/.test(
          message ?? '',
        ),
      ),
    true,
  );
  stopping.resolve();
  await stopped;
  const waiting = start(elsewhere('busy'));
  await holder.query("select pg_advisory_unlock(1634626675, hashtext('public'))");
  await waiting;
});

test('who only asks something of a shared database makes nothing in it', async (t) => {
  await postgres.query("create database fresh template template0 locale 'C'");
  await assert.rejects(start(elsewhere('fresh'), { beside: true, unchanged: true }), {
    code: 'invalid_state',
    message: /it is new, or of a server of another version/,
  });
  const client = await connect(t, { connectionString: elsewhere('fresh') });
  const { rows } = await client.query("select 1 from pg_tables where schemaname = 'public'");
  assert.equal(rows.length, 0);
  await start(elsewhere('fresh'));
  await start(elsewhere('fresh'), { beside: true, unchanged: true });
});
