/** `database` and `databaseFile`, and what the URL of a PostgreSQL may say. */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { describePostgres, parsePostgresUrl } from '../../src/lib/postgres-url.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { temporaryDirectory } from '../support/directory.ts';

const directory = temporaryDirectory();
after(() => directory[Symbol.dispose]());
const file = join(directory.path, 'andromeda.yaml');

function read(text: string, mode = 0o600) {
  writeFileSync(file, text);
  chmodSync(file, mode);
  return readConfig(file);
}

function write(name: string, text: string, mode = 0o600): void {
  writeFileSync(join(directory.path, name), text);
  chmodSync(join(directory.path, name), mode);
}

test('hosts in their order, with what else a URL can say', () => {
  assert.deepEqual(
    parsePostgresUrl('postgres://ada:p%40ss@h1,h2:6432,[fd00::1]:7/andromeda?sslmode=verify-full'),
    {
      hosts: [
        { host: 'h1', port: 5432 },
        { host: 'h2', port: 6432 },
        { host: 'fd00::1', port: 7 },
      ],
      user: 'ada',
      password: 'p@ss',
      database: 'andromeda',
      sslMode: 'verify-full',
      sslRootCert: undefined,
      schema: undefined,
    },
  );
  const socket = parsePostgresUrl('postgresql:///andromeda?host=/run/postgresql&schema=access');
  assert.deepEqual(
    [socket.hosts, socket.schema, socket.sslMode],
    [[{ host: '/run/postgresql', port: 5432 }], 'access', 'prefer'],
  );
  const target = parsePostgresUrl('postgres://ada:secret@h1,h2:6432/andromeda');
  assert.equal(describePostgres(target), 'andromeda on h1, h2:6432');
});

const refused: [string, RegExp][] = [
  ['mysql://h/x', /It is postgres:\/\/USER@HOST\/DATABASE/],
  ['postgres://ada:secret@h', /It names no database/],
  ['postgres://ada:secret@/x', /A host in it is missing/],
  ['postgres://ada:secret@h:70000/x', /There is no port 70000/],
  [
    'postgres://ada:secret@h/x?sslmode=maybe',
    /Its sslmode can be disable, prefer, require, verify-ca, verify-full/,
  ],
  ['postgres://ada:secret@h/x?password=secret', /It cannot have \?password=; it can have sslmode/],
  ['postgres://ada:secret%@h/x', /and % as %25/],
  // Characters that end a password, or what looks like one, too early.
  ['postgres://ada:se@cret@h/x', /There is an @ where none can be\. .*write @ as %40/],
  ['postgres://ada:se/cret@h/x', /write .*\/ as %2F/],
  ['postgres://ada:12/cret@h/x', /write .*\/ as %2F/],
  ['postgres://ada:se#cret@h/x', /write .*# as %23/],
  ['postgres://ada:12?cret=1@h/x', /write .*\? as %3F/],
  ['postgres://ada:12?host=cret@h/x', /There is an @ where none can be/],
  ['postgres://ada:12?host=cret%40h/x', /There is an @ where none can be/],
  ['postgres://ada:12?application_name=x&cret@h/x', /There is an @ where none can be/],
  ['postgres://ada:hunter@2cret@127.0.0.1/x', /There is an @ where none can be/],
  ['postgres://ada:x?cret@127.0.0.1:5432/x', /There is an @ where none can be/],
  ['postgres://ada:1234/cret@127.0.0.1/x', /There is an @ where none can be/],
  ['postgres://ada:secret@h/x?target_session_attrs=standby', /The service writes/],
];
for (const [url, message] of refused) {
  test(`refused, without the password: ${url.replace('secret', '…')}`, () => {
    assert.throws(
      () => parsePostgresUrl(url),
      (error: Error) => message.test(error.message) && !/secret@|cret[@=]|\bse\b/.test(error.message),
    );
  });
}

test('the URL is in the settings, or in a file of its own that no other account reads', () => {
  assert.equal(read('{}').database, undefined);
  const url = 'postgres://andromeda@h1,h2/andromeda?sslmode=verify-full';
  assert.equal(read(`database: ${url}`, 0o644).database, url);
  const secret = 'postgres://andromeda:secret@h/x';
  assert.equal(read(`database: ${secret}`).database, secret);
  assert.throws(() => read(`database: ${secret}`, 0o644), /others can read this file.*databaseFile/);
  write('url', `${secret}?sslmode=require&sslrootcert=ca.pem\n`);
  const config = read('databaseFile: url', 0o644);
  assert.equal(
    config.database,
    `${secret}?sslmode=require&sslrootcert=${encodeURIComponent(join(directory.path, 'ca.pem'))}`,
  );
  assert.ok(config.files.includes(join(directory.path, 'url')));
  write('url', `${secret}?%73slrootcert=ca.pem&sslmode=require\n`);
  const encoded = new URL(read('databaseFile: url', 0o644).database ?? '');
  assert.equal(encoded.searchParams.get('sslrootcert'), join(directory.path, 'ca.pem'));
  assert.throws(() => read(`database: ${url}\ndatabaseFile: url`), /say the same: give one of them/);
  write('url', secret, 0o640);
  assert.throws(() => read('databaseFile: url'), /can be read or written by others. chmod 600/);
  write('url', 'postgres://ada:secret@h');
  assert.throws(
    () => read('databaseFile: url'),
    (error: Error) => {
      assert.match(error.message, /databaseFile: .*names no database/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    },
  );
  assert.throws(
    () => read('database: mysql://ada:secret@h'),
    (error: Error) => {
      assert.match(error.message, /database must be the URL of a PostgreSQL/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    },
  );
});
