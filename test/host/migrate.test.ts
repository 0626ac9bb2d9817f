/** `andromeda migrate` on a real PostgreSQL: there and back, cut off, refused; and dumps of that database, put back. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { stringify } from 'yaml';
import { createLogger } from '../../src/lib/log.ts';
import { makeSecretsKey } from '../../src/lib/secrets-key.ts';
import { type App, startApp } from '../../src/service/compose/index.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { appendAuditEntry, findLastSeq } from '../../src/store/audit/audit.ts';
import { copyToPostgres } from '../../src/store/data-dir/copy-database.ts';
import { createInstallation } from '../../src/store/data-dir/lab.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { endWrites, openPostgres } from '../../src/store/engine/engine.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { ada, refresh, signIn } from '../identity/issuer/harness.ts';
import { alpha, physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails } from '../support/heard.ts';
import { freePorts } from '../support/ports.ts';
import {
  createPostgres,
  missingPostgres,
  postgresPrograms,
  type TestPostgres,
} from '../support/postgres-server.ts';
import { beginProgram, runProgram } from '../support/program.ts';
import { ancient, newest } from '../support/schemas.ts';
import { unless } from '../support/unless.ts';

const skip = missingPostgres() ?? false;
const test = unless(skip);
let postgres: TestPostgres;
before(async () => {
  if (!skip) postgres = await createPostgres();
});
after(() => postgres?.[Symbol.asyncDispose]());
let schemas = 0;

/** A directory with the configurations of one installation, on SQLite and on a PostgreSQL of its own. */
async function prepare(t: TestContext) {
  const directory = temporaryDirectory();
  let app: App | undefined;
  const stop = async () => {
    await app?.[Symbol.asyncDispose]();
    app = undefined;
  };
  t.after(async () => {
    await stop();
    directory[Symbol.dispose]();
  });
  const [platform = 0, business = 0, gateway = 0, issuer = 0] = await freePorts(4);
  const at = (name: string) => join(directory.path, name);
  const settings = {
    dataDir: './data',
    platform: { listen: `127.0.0.1:${platform}` },
    business: { listen: `127.0.0.1:${business}` },
    gateway: { listen: `127.0.0.1:${gateway}`, port: gateway, processes: 0 },
    identity: { embedded: { listen: `127.0.0.1:${issuer}` } },
    sync: { intervalSeconds: 1 },
    clusters: { unsafeSimulatedLogins: true },
  };
  const schema = `migrate_${++schemas}`;
  const database = postgres.url({ schema });
  writeFileSync(at('sqlite.yaml'), stringify(settings));
  writeFileSync(at('postgres.yaml'), stringify({ ...settings, database, secretsKeyFile: './secrets.key' }));
  writeFileSync(at('secrets.key'), makeSecretsKey(), { mode: 0o600 });
  const data = at('data');
  return {
    at,
    data,
    schema,
    file: join(data, 'andromeda.db'),
    issuerUrl: `http://127.0.0.1:${issuer}`,
    /** Where `isNew`, with people. */
    async start(config: string, isNew = true, lab = physics): Promise<App> {
      const installation = { lab, source: 'test', passwords: new Map([[ada.email, ada.password]]) };
      const log = createLogger('silent');
      app = await startApp({ config: readConfig(config), log, ...(isNew && { installation }) });
      return app;
    },
    stop,
  };
}

const migrate = (to: 'sqlite' | 'postgres', config: string) =>
  runProgram('migrate', '--from', to === 'sqlite' ? 'postgres' : 'sqlite', '--to', to, '--config', config);

const hashOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');

async function fill(store: Store, entries: number): Promise<void> {
  for (let count = 0; count < entries; count += 500)
    await store.write(async (tx) => {
      for (let at = 0; at < 500; at += 1)
        await appendAuditEntry(tx, {
          actorUserId: systemUserId,
          operation: 'test',
          target: `entry ${count + at} ü`,
          reason: 'a test',
          result: 'done',
        });
    });
}

type Told = [address: string, status: number, text: string];

/** What a person is answered with a token. */
async function answers(config: string, token: unknown): Promise<Told[]> {
  const { business } = readConfig(config);
  const addresses = ['/me', '/me/ssh-keys', '/me/resource-grants', '/me/kubernetes-access'].map(
    (path) => business.url + path,
  );
  const ask = async (address: string): Promise<Told> => {
    const response = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
    return [address, response.status, await response.text()];
  };
  return Promise.all(addresses.map(ask));
}

test('there and back: the same answers to the same tokens, under the same host key', async (t) => {
  const { at, data, schema, file, start, stop, issuerUrl } = await prepare(t);
  const [sqlite, shared] = [at('sqlite.yaml'), at('postgres.yaml')];
  let app = await start(sqlite);
  await fill(app.store, 500);
  let { access_token: token, refresh_token: renewal } = await signIn(issuerUrl);
  const facts = () => answers(sqlite, token);
  const renew = async () => {
    const { status, body } = await refresh(issuerUrl, renewal);
    assert.equal(status, 200, JSON.stringify(body));
    ({ access_token: token, refresh_token: renewal } = body);
  };
  const first = await facts();
  assert.deepEqual(
    first.map(([, status]) => status),
    [200, 200, 200, 200],
  );
  const fingerprint = app.gatewayFingerprint;
  await stop();
  const ofHosts = join(data, 'clusters', alpha, 'slurm');
  mkdirSync(ofHosts, { recursive: true });
  const hosts = '{"address":"login","nodes":[]}\n';
  writeFileSync(join(ofHosts, 'hosts.json'), hosts);
  writeFileSync(join(ofHosts, 'known_hosts.met'), 'node ssh-ed25519 AAAA\n');
  const keys = join(data, 'keys');
  const hash = hashOf(file);

  const there = await migrate('postgres', shared);
  assert.deepEqual([there.status, there.err], [0, '']);
  assert.match(
    there.out,
    /has all of .*andromeda\.db: \d+ rows of \d+ tables, counted on both sides,\n5\d\d entries of the audit trail/,
  );
  assert.equal(hashOf(file), hash, 'the source is as it was');
  assert.ok(existsSync(join(keys, 'gateway_host_ed25519')));

  const again = await migrate('postgres', shared);
  assert.deepEqual([again.status, again.err], [0, '']);
  assert.match(again.out, /was moved already, and has all of .*andromeda\.db: \d+ rows of \d+ tables/);
  await postgres.query(`insert into ${schema}.counters values ('of a service', 1)`);
  const other = await migrate('postgres', shared);
  fails(other, 1, /is not empty: there are rows in \w+\. Nothing was copied/);

  renameSync(keys, `${keys}.before`);
  renameSync(join(data, 'issuer-keys.json'), join(data, 'issuer-keys.json.before'));
  renameSync(file, `${file}.before`);
  renameSync(ofHosts, `${ofHosts}.before`);
  app = await start(shared, false);
  assert.equal(app.gatewayFingerprint, fingerprint);
  assert.deepEqual(await facts(), first);
  await renew();
  assert.deepEqual(await facts(), first);
  assert.equal(existsSync(join(keys, 'gateway_host_ed25519')), false);
  fails(await migrate('sqlite', shared), 1, /Another Andromeda serves from|serve/);
  await stop();

  // A server that stands still while its database is copied, and knows nothing of it.
  const database = readConfig(shared).database ?? '';
  const standing = await openStore(at('standing'), { database });
  await using _closed = { [Symbol.asyncDispose]: () => standing.close() };
  const insert = () => standing.write(({ db }) => db.deleteFrom('leader').execute());
  await insert();
  const server = await openPostgres(database, { serverId: 'server_test' });
  await assert.rejects(endWrites(server, 0), {
    code: 'invalid_state',
    message: /A server wrote to the PostgreSQL while it was copied/,
  });
  await server[Symbol.asyncDispose]();
  await insert();
  writeFileSync(`${file}-wal`, 'of the database that was moved away');
  const left = await migrate('sqlite', shared);
  assert.equal(left.status, 1);
  assert.match(left.err, /its log .*andromeda\.db-wal, with what was written last\. .* mv .*before-wal/);
  renameSync(`${file}-wal`, `${file}.before-wal`);
  const back = await migrate('sqlite', shared);
  assert.deepEqual([back.status, back.err], [0, '']);
  const repeated = await migrate('sqlite', shared);
  assert.deepEqual([repeated.status, repeated.err], [0, '']);
  assert.match(repeated.out, /andromeda\.db was moved already, and has all of/);
  const moved = /takes no writes any more: `andromeda migrate` copied the installation out of it/;
  await assert.rejects(insert(), { code: 'service_unavailable', message: moved });
  await assert.rejects(openStore(at('other'), { database }), { code: 'invalid_state', message: moved });
  assert.match(
    (await runProgram('doctor', '--config', shared)).out,
    /wrong +database +It takes no writes any more/,
  );
  for (const name of [
    'andromeda.db',
    'issuer-keys.json',
    'keys/gateway_host_ed25519',
    'keys/audit_ed25519.pem',
  ])
    assert.equal(statSync(join(data, name)).mode & 0o777, 0o600, name);
  assert.equal(
    readFileSync(join(keys, 'audit_ed25519.pem'), 'utf8'),
    readFileSync(`${keys}.before/audit_ed25519.pem`, 'utf8'),
  );
  assert.equal(readFileSync(join(ofHosts, 'known_hosts.met'), 'utf8'), 'node ssh-ed25519 AAAA\n');
  assert.equal(readFileSync(join(ofHosts, 'hosts.json'), 'utf8'), hosts);
  app = await start(sqlite, false);
  assert.equal(app.gatewayFingerprint, fingerprint);
  assert.deepEqual(await facts(), first);
  await renew();
  await stop();
  assert.match(
    (await migrate('sqlite', shared)).err,
    /was copied before: it is that copy, in which a service has written since, or an older one/,
  );
});

test('a source that cannot be copied is named, with what it has', async (t) => {
  const { at, data, file } = await prepare(t);
  const store = await openStore(data);
  await createInstallation(store, physics, 'test');
  await store.close();
  const { database = '', secrets: keys } = readConfig(at('postgres.yaml'));
  assert.ok(keys);
  const options = { dataDir: data, database, keys, onProgress() {}, signal: new AbortController().signal };
  const refused = (message: RegExp) =>
    assert.rejects(
      copyToPostgres(options, () => ({ secrets: new Map(), managedHosts: new Map() })),
      { name: 'DomainError', message },
    );
  const change = (sql: string) => {
    const source = new Database(file);
    source.pragma('foreign_keys = off');
    source.exec(sql);
    source.close();
  };
  change("insert into kysely_migration values ('9999-later', '2027-01-01T00:00:00Z')");
  await refused(/andromeda\.db is of a newer version of Andromeda\. Copy it with that version/);
  change(`delete from kysely_migration where name = '9999-later'; ${ancient}`);
  await refused(
    /andromeda\.db was written by a version of Andromeda before 0\.3\.0, which this one cannot read\./,
  );
  change(`update kysely_migration set name = '${newest}'`);
  change("update memberships set user_id = user_id || '_gone'");
  await refused(/A row of memberships cannot be copied: .*foreign key.*Nothing was copied/);
  writeFileSync(file, readFileSync(file).subarray(0, 40_000));
  await refused(/andromeda\.db cannot be (used|opened): it is damaged/);
});

test('kill -9 while it copies leaves the source as it is and the target empty; the same command does it', async (t) => {
  const { at, data, schema, file } = await prepare(t);
  const store = await openStore(data);
  await createInstallation(store, physics, 'test');
  await fill(store, 5_000);
  const entries = await findLastSeq(store.read);
  await store.close();
  const hash = hashOf(file);
  const rowsThere = async () => {
    const [row] = await postgres.query<{ count: string }>(`select count(*) from ${schema}.audit_entries`);
    return Number(row?.count);
  };
  const isCopying = async () => {
    const [row] = await postgres.query<{ count: string }>(
      `select count(*) from pg_stat_activity where query like 'insert into "audit_entries"%'`,
    );
    return Number(row?.count) > 0;
  };
  for (const direction of ['postgres', 'sqlite'] as const) {
    const child = beginProgram(
      'migrate',
      '--from',
      direction === 'sqlite' ? 'postgres' : 'sqlite',
      '--to',
      direction,
      '--config',
      at('postgres.yaml'),
    );
    const ended = once(child, 'close');
    const isThere = direction === 'postgres' ? isCopying : async () => existsSync(join(data, '.migrate'));
    while (child.exitCode === null && !(await isThere())) await sleep(5);
    child.kill('SIGKILL');
    await ended;
    // Where it was over before it could be killed, there is nothing to repeat.
    const isDone = child.exitCode === 0;
    if (direction === 'postgres') {
      assert.equal(hashOf(file), hash);
      assert.equal(await rowsThere(), isDone ? entries : 0);
    } else if (!isDone) assert.equal(existsSync(file), false);
    if (!isDone) {
      const { status, err } = await migrate(direction, at('postgres.yaml'));
      assert.deepEqual([status, err], [0, ''], direction);
    }
    assert.equal(await rowsThere(), entries);
    renameSync(file, `${file}.${direction}`);
  }
  assert.equal(existsSync(join(data, '.migrate')), false);
});

test('refused in words: a service that runs, no database named, no key, one kind to itself', async (t) => {
  const { at, data } = await prepare(t);
  const shared = at('postgres.yaml');
  const store = await openStore(data);
  const held = await migrate('postgres', shared);
  assert.deepEqual([held.status, held.out], [1, '']);
  assert.match(held.err, /Another Andromeda serves from .*Stop that one first/);
  await store.close();
  // A service that began anew here would know nobody.
  const started = await runProgram('serve', '--config', shared);
  assert.equal(started.status, 78, started.err);
  assert.match(
    `${started.out}${started.err}`,
    /has no people yet, and .*andromeda\.db has the installation of before\. Copy it: andromeda migrate --from sqlite --to postgres\. .*move .*andromeda\.db away/,
  );
  assert.match(
    (await migrate('postgres', at('sqlite.yaml'))).err,
    /names no PostgreSQL\. Give it `database`/,
  );
  assert.match(
    (await migrate('sqlite', shared)).err,
    /There is a database .*andromeda\.db already.*Move it away first/,
  );
  const settings = readFileSync(shared, 'utf8');
  writeFileSync(shared, settings.replace(/secretsKeyFile.*\n/, ''));
  assert.match((await migrate('postgres', shared)).err, /Name the key as secretsKeyFile/);
  const same = await runProgram('migrate', '--from', 'sqlite', '--to', 'sqlite', '--config', shared);
  assert.equal(same.status, 2);
  assert.match(same.err, /--from and --to are both sqlite/);
});

test('a dump, put into a new database, serves; andromeda backup says what to use', async (t) => {
  const { at, schema, start, stop, issuerUrl } = await prepare(t);
  const shared = at('postgres.yaml');
  // Without clusters: a simulated one waits until the server of the dump is certainly gone.
  let app = await start(shared, true, { ...physics, clusters: [] });
  const { gatewayFingerprint } = app;
  const { access_token: token } = await signIn(issuerUrl);
  const told = async (config: string) => (await answers(config, token)).map(([, status]) => status);
  assert.deepEqual(await told(shared), [200, 200, 200, 200]);
  const programs = postgresPrograms() ?? '';

  const dump = at('it.dump');
  const connection = ['-h', postgres.directory, '-U', 'postgres'];
  execFileSync(join(programs, 'pg_dump'), [...connection, '-Fc', '-n', schema, '-f', dump, 'andromeda']);
  await stop();
  await postgres.query("create database restored template template0 encoding 'UTF8' locale 'C'");
  execFileSync(join(programs, 'pg_restore'), [
    ...connection,
    '--no-owner',
    '--exit-on-error',
    '--single-transaction',
    '-d',
    'restored',
    dump,
  ]);
  const restored = at('restored.yaml');
  const settings = readFileSync(shared, 'utf8')
    .replace('/andromeda?', '/restored?')
    .replace('./data', './other');
  writeFileSync(restored, settings);
  app = await start(restored, false);
  assert.equal(app.gatewayFingerprint, gatewayFingerprint);
  assert.deepEqual(await told(restored), [200, 200, 200, 200]);
  await stop();
  for (const args of [
    ['backup', at('x')],
    ['restore', at('x')],
    ['restore', '--drill'],
  ]) {
    const { status, err } = await runProgram(...args, '--config', restored);
    assert.equal(status, 1, args.join(' '));
    assert.match(err, /The database is a PostgreSQL, for which there is pg_dump.*secrets key/);
  }
  writeFileSync(restored, `${settings}backup: { to: ${at('backups')} }\n`);
  assert.throws(() => readConfig(restored), /backup: backups by the service are of SQLite.*pg_dump/);
});
