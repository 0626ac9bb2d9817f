/** What a server that starts waits for, and what it refuses for an operator to mend. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { createLogger } from '../../../src/lib/log.ts';
import { openStore, type StoreOptions } from '../../../src/store/index.ts';
import { eventually } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { createPostgres, missingPostgres, type TestPostgres } from '../../support/postgres-server.ts';

const skip = missingPostgres() ?? false;
let postgres: TestPostgres;
before(async () => {
  if (!skip) postgres = await createPostgres();
});
after(() => postgres?.[Symbol.asyncDispose]());

const lines: { event: string; message?: string }[] = [];
const log = createLogger('info', (line) => void lines.push(JSON.parse(line)));

/** As a server does, which waits where the database is away. */
async function start(database: string, options: StoreOptions = {}): Promise<void> {
  using directory = temporaryDirectory();
  await (await openStore(directory.path, { database, log, ...options })).close();
}

const elsewhere = (name: string, user = 'postgres') =>
  postgres.url().replace('postgres@', `${user}@`).replace('/andromeda?', `/${name}?`);

test('a user or a database that is not there, and authorities that cannot be read, are not waited for', {
  skip,
}, async () => {
  for (const [url, message] of [
    [elsewhere('missing'), /"missing" does not exist/],
    [elsewhere('andromeda', 'nobody'), /role "nobody" does not exist/],
    [
      postgres.url({ sslmode: 'verify-full', sslrootcert: '/not/there.pem' }),
      /sslrootcert: ENOENT.*there\.pem/,
    ],
  ] as const)
    await assert.rejects(start(url), { code: 'invalid_state', message });
});

test('a user without the right to make tables is told who has to own the database', { skip }, async () => {
  await postgres.query('create role norights login');
  await postgres.query("create database closed template template0 locale 'C'");
  await assert.rejects(start(elsewhere('closed', 'norights')), {
    code: 'invalid_state',
    message: /permission denied for schema public\. .*alter database "closed" owner to "norights"/,
  });
  await postgres.query('alter database closed owner to norights');
  await start(elsewhere('closed', 'norights'));
});

test('a database that takes no writes is refused in words', { skip }, async () => {
  await postgres.query("create database fixed template template0 locale 'C'");
  await postgres.query('alter database fixed set default_transaction_read_only = on');
  await assert.rejects(start(elsewhere('fixed')), { code: 'invalid_state', message: /it takes no writes/ });
});

test('while another server brings the schema up to date, one waits, says so, and can be stopped', {
  skip,
}, async () => {
  await postgres.query("create database busy template template0 locale 'C'");
  const holder = new pg.Client({ connectionString: elsewhere('busy') });
  holder.on('error', () => {});
  await holder.connect();
  try {
    await holder.query("select pg_advisory_lock(1634626675, hashtext('public'))");
    const stopping = Promise.withResolvers<void>();
    const stopped = assert.rejects(start(elsewhere('busy'), { stopping: stopping.promise }), /was stopped/);
    await eventually(
      async () => lines,
      (all) => all.some(({ message }) => message?.includes('Another server is bringing the database')),
    );
    stopping.resolve();
    await stopped;
    const waiting = start(elsewhere('busy'));
    await holder.query("select pg_advisory_unlock(1634626675, hashtext('public'))");
    await waiting;
  } finally {
    await holder.end();
  }
});

test('who only asks something of a shared database makes nothing in it', { skip }, async () => {
  await postgres.query("create database fresh template template0 locale 'C'");
  await assert.rejects(start(elsewhere('fresh'), { beside: true, unchanged: true }), {
    code: 'invalid_state',
    message: /it is new, or of a server of another version/,
  });
  const client = new pg.Client({ connectionString: elsewhere('fresh') });
  await client.connect();
  const { rows } = await client.query("select 1 from pg_tables where schemaname = 'public'");
  await client.end();
  assert.equal(rows.length, 0);
  await start(elsewhere('fresh'));
  await start(elsewhere('fresh'), { beside: true, unchanged: true });
});
