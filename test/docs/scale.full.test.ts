/** What docs/scale.md says of PostgreSQL works, line by line. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import pg from 'pg';
import { readExample } from '../../scripts/campaign/cluster/addresses.ts';
import { createLogger } from '../../src/lib/log.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { createPerson } from '../../src/store/people/people.ts';
import { becomes, eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { createPostgres, missingPostgres, postgresPrograms } from '../support/postgres-server.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/scale.md'), 'utf8');
/** Of docs/scale/postgresql.conf. */
const settings = [...readExample('postgresql.conf').matchAll(/^(\w+) = (.*)$/gm)].map(
  ([, name = '', value = '']): [string, string] => [name, value.replaceAll("'", '')],
);

test('the lines for PostgreSQL, in their order, make a primary and a synchronous standby that the service takes', {
  skip: missingPostgres() ?? false,
}, async (t) => {
  const [port = 0, standbyPort = 0] = await freePorts(2);
  const authority = createAuthority();
  const [[, standbys = ''] = []] = settings.filter(([name]) => name === 'synchronous_standby_names');
  const without = settings.filter(([name]) => name !== 'synchronous_standby_names');
  await using primary = await createPostgres(undefined, {
    port,
    more: [...without, ['listen_addresses', '127.0.0.1']],
  });
  const programs = postgresPrograms() ?? '';
  const [uid, gid] = [statSync(primary.directory).uid, statSync(primary.directory).gid];
  const data = join(primary.directory, 'data');
  const put = (name: string, text: string) => {
    writeFileSync(join(data, name), text, { mode: 0o600 });
    chownSync(join(data, name), uid, gid);
  };
  const asked = (sql: string) => primary.query(sql);

  const [roles = ''] = /^ {7}create role andromeda (?:.*\n)+?(?=\n)/m.exec(page) ?? [];
  const steps = [roles, '](scale/postgresql.conf)', '`pg_basebackup', '`synchronous_standby_names`'];
  const places = steps.map((text) => page.indexOf(text));
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
  const sql = roles.replaceAll("'…'", "'secret'").replace(/--.*$/gm, '');
  await postgresQuery(primary.directory, port, 'drop database andromeda');
  for (const statement of sql.split(';').map((one) => one.trim()))
    if (statement !== '') await postgresQuery(primary.directory, port, statement);

  const { cert, key } = authority.issue('server');
  put('server.crt', cert);
  put('server.key', key);
  const rules = [...page.matchAll(/^ {7}(hostssl .*)$/gm)].map(([, rule = '']) => rule);
  assert.equal(rules.length, 2);
  const local = readFileSync(join(data, 'pg_hba.conf'), 'utf8').match(/^local .*$/gm) ?? [];
  put('pg_hba.conf', [...local, ...rules].join('\n').replaceAll('10.20.0.0/24', '127.0.0.0/8'));
  await asked('alter system set ssl = on');
  await asked('select pg_reload_conf()');

  const copy = join(primary.directory, 'standby');
  const [, line = ''] = /`(pg_basebackup [^`]*)`/.exec(page) ?? [];
  const [, ...args] = line.replace('10.20.0.21', '127.0.0.1').replace('DIRECTORY', copy).split(' ');
  const own = { ...process.env, HOME: primary.directory, PGSSLMODE: 'require' };
  const env = { ...own, PGPASSWORD: 'secret', PGPORT: `${port}` };
  await promisify(execFile)(join(programs, 'pg_basebackup'), [...args, '-c', 'fast'], {
    ...{ uid, gid, cwd: primary.directory, env },
  });
  const standby = spawn(
    join(programs, 'postgres'),
    ['-D', copy, '-c', `port=${standbyPort}`, '-c', `unix_socket_directories=${primary.directory}`].concat(
      [['max_locks_per_transaction', '1024'], ...without].flatMap(([name, value]) => [
        '-c',
        `${name}=${value}`,
      ]),
    ),
    { uid, gid, cwd: primary.directory, stdio: 'ignore', env: own },
  );
  const ended = once(standby, 'exit');
  t.after(async () => {
    standby.kill('SIGQUIT');
    await ended;
  });
  await becomes(async () => (await asked('select 1 from pg_stat_replication')).length === 1, true);
  await asked(`alter system set synchronous_standby_names = '${standbys}'`);
  await asked('select pg_reload_conf()');
  await eventually(
    () => asked('select sync_state from pg_stat_replication'),
    ([row]) => row?.['sync_state'] === 'quorum',
  );

  using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'database-ca.pem'), authority.ca);
  const [, url = ''] = /echo '(postgres:[^']*)'/.exec(page) ?? [];
  const database = url
    .replace('PASSWORD', 'secret')
    .replace('10.20.0.21,10.20.0.22', `127.0.0.1:${port},127.0.0.1:${standbyPort}`)
    .replace('=database-ca.pem', `=${join(directory.path, 'database-ca.pem')}`);
  assert.match(database, /sslmode=verify-full/);
  const said: string[] = [];
  const log = createLogger('warn', (text) => void said.push(JSON.parse(text).message));
  const store = await openStore(join(directory.path, 'data'), { database, log });
  await store.write(
    async (tx) => void (await createPerson(tx, { email: 'ada@x.example', displayName: 'Ada' })),
  );
  await store.close();
  assert.deepEqual(said, [], 'nothing of standbys, clocks or open databases');
});

/** A statement in the database that is always there. */
async function postgresQuery(host: string, port: number, statement: string): Promise<void> {
  const client = new pg.Client({ host, port, user: 'postgres', database: 'postgres' });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
