/** What `sslmode` and `sslrootcert` ask of a PostgreSQL with TLS, and of one without. */
import assert from 'node:assert/strict';
import { appendFileSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { createLogger } from '../../../src/lib/log.ts';
import { parsePostgresUrl } from '../../../src/lib/postgres-url.ts';
import { Primary } from '../../../src/store/engine/postgres/primary.ts';
import { connectFirst } from '../../../src/store/engine/postgres/start.ts';
import { createAuthority } from '../../support/certificate.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { freePorts } from '../../support/ports.ts';
import { createPostgres, missingPostgres, type TestPostgres } from '../../support/postgres-server.ts';
import { test } from './server.ts';

let postgres: TestPostgres;
before(async () => {
  if (missingPostgres()) return;
  const [port = 0] = await freePorts(1);
  postgres = await createPostgres(undefined, { port, more: [['listen_addresses', '127.0.0.1,127.0.0.2']] });
});
after(() => postgres?.[Symbol.asyncDispose]());

/** Whether the connection that these options make has TLS. */
async function connect(options: Record<string, string>, host = '127.0.0.1'): Promise<boolean> {
  const url = `postgres://postgres@${host}:${postgres.port}/andromeda?${new URLSearchParams(options)}`;
  const session = await new Primary(parsePostgresUrl(url)).connect('reading');
  try {
    const { rows } = await session.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
    return (rows as { ssl: boolean }[])[0]?.ssl ?? false;
  } finally {
    await session.close();
  }
}

test('a server without TLS is taken by disable, prefer and nothing, and refused by all others', async () => {
  using directory = temporaryDirectory();
  const sslrootcert = join(directory.path, 'ca.pem');
  writeFileSync(sslrootcert, createAuthority().ca);
  for (const options of [{}, { sslmode: 'disable' }, { sslmode: 'prefer' }])
    assert.equal(await connect(options), false, JSON.stringify(options));
  for (const sslmode of ['require', 'verify-ca', 'verify-full'])
    await assert.rejects(connect({ sslmode, sslrootcert }), /does not support SSL/, sslmode);
  await assert.rejects(start({ sslmode: 'verify-full', sslrootcert }), {
    code: 'invalid_state',
    message:
      /does not support SSL connections \(switch on ssl in its postgresql\.conf, or have sslmode=prefer/,
  });
});

test('with TLS, each sslmode checks what it says: nothing, the authority, or the name too', async () => {
  const authority = createAuthority();
  await useTls(authority.issue('server'));
  using directory = temporaryDirectory();
  const fileOf = (name: string, ca: string) => {
    const file = join(directory.path, name);
    writeFileSync(file, ca);
    return file;
  };
  const right = fileOf('right.pem', authority.ca);
  const other = fileOf('other.pem', createAuthority().ca);

  assert.equal(await connect({ sslmode: 'disable' }), false);
  for (const options of [{}, { sslmode: 'prefer', sslrootcert: other }])
    assert.equal(await connect(options), true, JSON.stringify(options));
  for (const sslmode of ['require', 'verify-ca', 'verify-full']) {
    assert.equal(await connect({ sslmode, sslrootcert: right }), true, sslmode);
    await assert.rejects(connect({ sslmode, sslrootcert: other }), /certificate/, sslmode);
    const gone = join(directory.path, 'gone.pem');
    await assert.rejects(connect({ sslmode, sslrootcert: gone }), /gone\.pem/, sslmode);
  }
  assert.equal(await connect({ sslmode: 'verify-full', sslrootcert: right }, 'localhost'), true);
  // Its certificate has neither this address nor a name for it.
  const elsewhere = '127.0.0.2';
  assert.equal(await connect({ sslmode: 'verify-ca', sslrootcert: right }, elsewhere), true);
  await assert.rejects(
    connect({ sslmode: 'verify-full', sslrootcert: right }, elsewhere),
    /does not match certificate/,
  );
  // What a server does not wait for.
  await start({ sslmode: 'verify-full', sslrootcert: right });
  for (const [sslrootcert, host, message] of [
    [other, undefined, /have sslrootcert=FILE in the URL name the certificate of the authority/],
    ['system', undefined, /have sslrootcert=FILE/],
    [right, elsewhere, /have the URL name the host as its certificate does, or sslmode=verify-ca/],
  ] as const)
    await assert.rejects(start({ sslmode: 'verify-full', sslrootcert }, host), {
      code: 'invalid_state',
      message,
    });
  for (const sslmode of ['verify-ca', 'verify-full'])
    await assert.rejects(connect({ sslmode, sslrootcert: 'system' }), /certificate/, sslmode);
});

/** As a server does that would wait for it. */
async function start(options: Record<string, string>, host = '127.0.0.1'): Promise<void> {
  const target = parsePostgresUrl(
    `postgres://postgres@${host}:${postgres.port}/andromeda?${new URLSearchParams(options)}`,
  );
  const log = createLogger('silent');
  await (await connectFirst(new Primary(target), target, { log })).close();
}

/** Starts it again, with a certificate, and open to all addresses of this host. */
async function useTls({ cert, key }: { cert: string; key: string }): Promise<void> {
  const data = join(postgres.directory, 'data');
  const { uid, gid } = statSync(data);
  for (const [name, text] of Object.entries({ 'server.crt': cert, 'server.key': key })) {
    writeFileSync(join(data, name), text, { mode: 0o600 });
    chownSync(join(data, name), uid, gid);
  }
  appendFileSync(join(data, 'postgresql.conf'), 'ssl = on\n');
  appendFileSync(join(data, 'pg_hba.conf'), 'host all all 127.0.0.0/8 trust\n');
  await postgres.stop();
  await postgres.start();
}
