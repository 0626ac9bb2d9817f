/** Two servers on one real PostgreSQL: the same keys, changes of them known to both, and what protects them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, type TestContext } from 'node:test';
import { decodeProtectedHeader } from 'jose';
import { parse, stringify } from 'yaml';
import { keySetText, readKeySet } from '../../src/domain/key-rotation.ts';
import { createLogger } from '../../src/lib/log.ts';
import { makeSecretsKey, parseSecretsKeys, type SecretsKeys } from '../../src/lib/secrets-key.ts';
import { type App, startApp } from '../../src/service/compose/index.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { checkShared } from '../../src/service/host/checks/shared-findings.ts';
import { createInstallation } from '../../src/store/data-dir/lab.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { openSecrets } from '../../src/store/servers/secrets.ts';
import { ada, signIn } from '../identity/issuer/harness.ts';
import { becomes, eventually, physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails } from '../support/heard.ts';
import { freePorts } from '../support/ports.ts';
import { createPostgres, missingPostgres, type TestPostgres } from '../support/postgres-server.ts';
import { runProgram } from '../support/program.ts';
import { serve } from '../support/service-process.ts';
import { unless } from '../support/unless.ts';

const skip = missingPostgres() ?? false;
const test = unless(skip);
let postgres: TestPostgres;
before(async () => {
  if (!skip) postgres = await createPostgres();
});
after(() => postgres?.[Symbol.asyncDispose]());
let schemas = 0;

const databaseOf = (file: string) => readConfig(file).database;
const secretsOf = (file: string) => {
  const keys: SecretsKeys = parseSecretsKeys(readFileSync(file, 'latin1'), file, () => keys);
  return keys;
};

/** An installation of two servers, neither of which runs yet. */
async function prepare(t: TestContext) {
  const directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  const running = new Map<string, App>();
  t.after(async () => {
    await Promise.all([...running.values()].map((app) => app[Symbol.asyncDispose]()));
    directory[Symbol.dispose]();
  });
  const database = postgres.url({ schema: `secrets_${++schemas}` });
  const ports = await freePorts(8);
  const issuerUrl = `http://127.0.0.1:${ports[3]}`;
  const configs = ['one', 'two'].map((name, index) => {
    const [platform = 0, business = 0, gateway = 0, issuer = 0] = ports.slice(index * 4);
    const config = {
      dataDir: `./${name}`,
      database,
      secretsKeyFile: './secrets.key',
      platform: { listen: `127.0.0.1:${platform}` },
      business: { listen: `127.0.0.1:${business}` },
      gateway: { listen: `127.0.0.1:${gateway}`, port: gateway, processes: 0 },
      identity: { embedded: { listen: `127.0.0.1:${issuer}`, url: issuerUrl } },
    };
    writeFileSync(at(`${name}.yaml`), stringify(config));
    return { file: at(`${name}.yaml`), jwks: `http://127.0.0.1:${issuer}/jwks`, business };
  });
  const [one, two] = configs as [(typeof configs)[0], (typeof configs)[0]];
  return {
    at,
    one,
    two,
    issuerUrl,
    async start(config: string): Promise<App> {
      const passwords = new Map([[ada.email, ada.password]]);
      const installation = { lab: { ...physics, clusters: [] }, source: 'test', passwords };
      const app = await startApp({ config: readConfig(config), log: createLogger('silent'), installation });
      running.set(config, app);
      return app;
    },
    async stop(config: string) {
      await running.get(config)?.[Symbol.asyncDispose]();
      running.delete(config);
    },
  };
}

/** What `check` and `doctor` find of the database that a configuration names. */
async function findingsOf(config: string, deeper?: { isRunning: boolean }): Promise<string[]> {
  const shared = readConfig(config);
  assert.ok(shared);
  const findings = await Array.fromAsync(checkShared(shared.database ?? '', shared, deeper));
  return findings.map(({ verdict, about, text }) => `${verdict} ${about} ${text}`);
}

test('a key of the secrets is made once; without it, or with another, serve ends with 78 and makes nothing', async (t) => {
  const { at, one, start, stop } = await prepare(t);
  const made = await runProgram('admin', 'secrets', 'new-key', at('secrets.key'));
  assert.deepEqual([made.status, made.err], [0, '']);
  assert.equal(statSync(at('secrets.key')).mode & 0o777, 0o600);
  const key = readFileSync(at('secrets.key'), 'utf8');
  assert.ok(!made.out.includes(key.trim()));
  const again = await runProgram('admin', 'secrets', 'new-key', at('secrets.key'));
  assert.equal(again.status, 1);
  assert.match(again.err, /is there already, and is not replaced/);
  assert.equal(readFileSync(at('secrets.key'), 'utf8'), key);
  // As on a disk that is full.
  const program = join(import.meta.dirname, '../../src/main.ts');
  const makeOne = [process.execPath, program, 'admin', 'secrets', 'new-key', at('full.key')];
  const full = spawnSync('sh', ['-c', 'trap "" XFSZ; ulimit -f 0; exec "$@"', 'sh', ...makeOne], {
    encoding: 'utf8',
  });
  fails(full, 1, /full\.key cannot be written: EFBIG.*Nothing is left of it/);
  assert.equal(existsSync(at('full.key')), false);

  const settings = readFileSync(one.file, 'utf8');
  writeFileSync(one.file, settings.replace(/secretsKeyFile.*\n/, ''));
  const without = await runProgram('serve', '--config', one.file);
  assert.equal(without.status, 78);
  assert.match(without.err, /andromeda admin secrets new-key FILE.*secretsKeyFile/);
  writeFileSync(one.file, settings);

  const { gatewayFingerprint } = await start(one.file);
  await stop(one.file);
  await runProgram('admin', 'secrets', 'new-key', at('other.key'));
  writeFileSync(at('secrets.key'), readFileSync(at('other.key')));
  const wrong = await runProgram('serve', '--config', one.file);
  fails(wrong, 78, /are encrypted with the key [0-9a-f]{16}, and .*secrets\.key holds [0-9a-f]{16}/);
  const checked = await runProgram('check', '--config', one.file, '--quiet');
  assert.equal(checked.status, 1);
  assert.match(checked.out, /^wrong +secrets +The secrets in the database are encrypted with the key/m);
  writeFileSync(one.file, settings.replace(/secretsKeyFile.*\n/, ''));
  assert.match(
    (await findingsOf(one.file)).join('\n'),
    /^wrong secrets .*which the other servers have: bring that/m,
  );
  writeFileSync(one.file, settings);
  writeFileSync(at('secrets.key'), key);
  const well = (await findingsOf(one.file)).join('\n');
  assert.doesNotMatch(well, /^(wrong|warn)/m);
  assert.match(well, /^ok secrets All 4 in the database can be read with the key of .*secrets\.key\.$/m);
  assert.match(well, /^ok database Every table, column, index and trigger is there\.$/m);
  const listed = await runProgram('admin', 'secrets', 'list', '--config', one.file);
  assert.equal(listed.status, 0, listed.err);
  assert.match(listed.out, /^NAME +VERSION +KEY +MADE +CHANGED\naudit +1 +[0-9a-f]{16} /);
  for (const name of ['gateway-client', 'gateway-host', 'issuer'])
    assert.match(listed.out, new RegExp(`\n${name} +1 `));
  assert.doesNotMatch(listed.out, /PRIVATE|"/);
  const json = await runProgram('admin', 'secrets', 'list', '--json', '--config', one.file);
  assert.doesNotMatch(json.out, /PRIVATE/);
  assert.deepEqual(
    JSON.parse(json.out).secrets.map(({ name, version }: { name: string; version: number }) => [
      name,
      version,
    ]),
    ['audit', 'gateway-client', 'gateway-host', 'issuer'].map((name) => [name, 1]),
  );
  assert.equal((await start(one.file)).gatewayFingerprint, gatewayFingerprint);
});

test('the issuer’s keys are changed on one server, and every server signs and checks with them at once', async (t) => {
  const { at, one, two, issuerUrl, start } = await prepare(t);
  await runProgram('admin', 'secrets', 'new-key', at('secrets.key'));
  const [first, second] = [await start(one.file), await start(two.file)];
  assert.equal(first.gatewayFingerprint, second.gatewayFingerprint);
  const published = async (address: string) => {
    const { keys } = (await (await fetch(address)).json()) as { keys: { kid: string }[] };
    return keys.map(({ kid }) => kid);
  };
  const onBoth = async () => [await published(one.jwks), await published(two.jwks)];
  const [before] = await published(one.jwks);
  const key = (...args: string[]) => runProgram('admin', 'key', ...args, '--config', two.file);
  const made = await key('new', 'issuer');
  assert.deepEqual([made.status, made.err], [0, '']);
  assert.match(made.out, /^issuer .*, in The secret issuer in the database\n {2}in use +\S+ +until \S+Z\n/);
  const [kids] = await eventually(onBoth, ([a, b]) => a?.length === 2 && b?.length === 2);
  const [former, next = ''] = kids ?? [];
  assert.equal(former, before);
  // Two thirds of the time pass, by what is in the database, and then the rest.
  const store = await openStore(join(two.file, '../two'), { beside: true, database: databaseOf(two.file) });
  const secrets = await openSecrets(store, secretsOf(at('secrets.key')));
  const move = async (days: number) => {
    await secrets.change('issuer', (text = '') => {
      const set = readKeySet(text, 'it');
      const moved = (time = '') => new Date(Date.parse(time) - days * 86_400_000).toISOString();
      const { key: other = '', from, until } = set.next ?? {};
      return keySetText({ key: set.key, next: { key: other, from: moved(from), until: moved(until) } });
    });
    await store.messages.send('secrets', {});
  };
  await move(20);
  await eventually(onBoth, ([a, b]) => a?.[0] === next && b?.[0] === next);
  const { access_token: token } = await signIn(issuerUrl);
  assert.equal(decodeProtectedHeader(String(token)).kid, next);
  for (const { business } of [one, two]) {
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await fetch(`http://127.0.0.1:${business}/me`, { headers })).status, 200);
  }
  await move(10);
  assert.deepEqual(await eventually(onBoth, ([a, b]) => a?.length === 1 && b?.length === 1), [
    [next],
    [next],
  ]);
  const kept = await eventually(
    async () => readKeySet((await secrets.find('issuer')) ?? '', 'it'),
    (set) => set.next === undefined,
  );
  assert.ok(!kept.key.includes(String(before)), 'the former is nowhere any more');
  const stolen = await key('new', 'issuer', '--keep', '0');
  assert.equal(stolen.status, 0, stolen.err);
  await eventually(onBoth, ([a, b]) => a?.length === 1 && a[0] !== next && a[0] === b?.[0]);
  await store.close();
});

test('another key takes the place of that of the secrets while servers run', async (t) => {
  const { at, one, two, start, stop } = await prepare(t);
  for (const name of ['secrets.key', 'next.key']) await runProgram('admin', 'secrets', 'new-key', at(name));
  const [old, next] = [readFileSync(at('secrets.key'), 'utf8'), readFileSync(at('next.key'), 'utf8')];
  const { gatewayFingerprint } = await start(one.file);
  writeFileSync(at('old.key'), old, { mode: 0o600 });
  writeFileSync(at('secrets.key'), `${old}${next}`);
  const rotate = () =>
    runProgram(
      'admin',
      'secrets',
      'rotate',
      '--from',
      at('old.key'),
      '--to',
      at('next.key'),
      '--config',
      one.file,
    );
  const rotated = await rotate();
  assert.deepEqual([rotated.status, rotated.err], [0, '']);
  assert.match(rotated.out, /^\d+ of \d+ secrets were encrypted anew/);
  assert.match((await rotate()).out, /^All \d+ secrets were encrypted with the key/);
  // One that started before, with the old key alone, and reads its file again; and one that starts with both.
  const held = await runProgram('admin', 'key', 'new', 'issuer', '--config', one.file);
  assert.deepEqual([held.status, held.err], [0, '']);
  assert.equal((await start(two.file)).gatewayFingerprint, gatewayFingerprint);
  await stop(two.file);
  writeFileSync(at('secrets.key'), old);
  await assert.rejects(start(two.file), { code: 'invalid_state', message: /are encrypted with the key/ });
  writeFileSync(at('secrets.key'), next);
  assert.equal((await start(two.file)).gatewayFingerprint, gatewayFingerprint);
});

test('check and doctor say what a shared database lacks, and what is in it that is not ours', async (t) => {
  const { at, one, start, stop } = await prepare(t);
  const schema = `secrets_${schemas}`;
  writeFileSync(at('secrets.key'), makeSecretsKey(), { mode: 0o600 });
  const before = (await findingsOf(one.file)).join('\n');
  assert.doesNotMatch(before, /^(wrong|warn)/m);
  assert.match(before, /^ok database There is nothing in it yet/m);
  // It was only asked.
  assert.deepEqual(await postgres.query('select 1 from pg_namespace where nspname = $1', [schema]), []);
  const other = at('other.yaml');
  writeFileSync(other, readFileSync(one.file, 'utf8').replace('./one', './other'));
  const alone = await openStore(at('other'));
  await createInstallation(alone, { ...physics, clusters: [] }, 'test');
  await alone.close();
  assert.match(
    (await findingsOf(other)).join('\n'),
    /^wrong database The database .* has no people yet, and .*andromeda\.db has the installation of before\. Copy it/m,
  );
  await start(one.file);
  await stop(one.file);
  const deeper = (await findingsOf(one.file, { isRunning: false })).join('\n');
  assert.match(deeper, /^ok audit trail All \d+ entries fit, and are signed up to entry \d+\.$/m);
  assert.doesNotMatch(deeper, /^wrong/m);
  assert.match(
    (await findingsOf(other)).join('\n'),
    /^wrong database The database .* has an installation, and .* is of another one, or was started alone\. /m,
  );

  const wrong = at('wrong.yaml');
  writeFileSync(wrong, readFileSync(one.file, 'utf8').replace(schema, `${schema}_wrong`));
  assert.match(
    (await findingsOf(wrong)).join('\n'),
    /^wrong database The database .* has no people yet, and the one that was served from .*one had an installation/m,
  );
  const change = (sql: string) => postgres.query(`set search_path to ${schema}; ${sql}`);
  await change('drop trigger audit_entries_remain on audit_entries; create table guests (id bigint)');
  const first = (await findingsOf(one.file)).join('\n');
  assert.match(
    first,
    /^wrong database It lacks trigger audit_entries_remain: dropped, or a restore was cut short\. .*docs\/operations\.md/m,
  );
  assert.match(first, /^warn database It has tables that are not Andromeda's: guests\. /m);
  await change('drop table ssh_keys cascade; alter table servers drop column name; delete from secrets');
  const second = (await findingsOf(one.file)).join('\n');
  assert.match(second, /^wrong database It lacks table ssh_keys, column servers\.name: /m);
  assert.match(
    second,
    /^wrong secrets audit, gateway-client, gateway-host, issuer are gone from the database/m,
  );
});

test('a reload that would open no database, another one, or not its secrets, changes nothing', async (t) => {
  const { at, one } = await prepare(t);
  const key = makeSecretsKey();
  writeFileSync(at('secrets.key'), key, { mode: 0o600 });
  const settings = parse(readFileSync(one.file, 'utf8'));
  await using service = serve(one.file);
  const isServed = () =>
    fetch(`http://127.0.0.1:${one.business}/readyz`).then(
      () => true,
      () => false,
    );
  await service.until('serve.ready');
  let refused = 0;
  async function refusedFor(why: RegExp, changed: object) {
    writeFileSync(one.file, stringify({ ...settings, ...changed }));
    service.child.kill('SIGHUP');
    await service.until('serve.reload.refused', ++refused);
    assert.match(String(service.events('serve.reload.refused').at(-1)?.['message']), why);
    assert.equal(await isServed(), true);
  }
  writeFileSync(at('secrets.key'), makeSecretsKey());
  await refusedFor(/^Not reloaded: .*secrets\.key/, {});
  writeFileSync(at('secrets.key'), key);
  await refusedFor(/does not know this server/, { database: postgres.url({ schema: 'nothing' }) });
  await refusedFor(/database "andromedb" does not exist/, {
    database: postgres.url().replace('/andromeda', '/andromedb'),
  });
  await refusedFor(/name no database any more/, {
    database: undefined,
    secretsKeyFile: undefined,
  });
  await postgres.stop();
  try {
    await refusedFor(/cannot be used/, {});
  } finally {
    await postgres.start();
  }
  await becomes(async () => (await fetch(`http://127.0.0.1:${one.business}/readyz`)).status, 200);
  service.child.kill('SIGHUP');
  await service.until('serve.ready', 2);

  await postgres.stop();
  try {
    service.child.kill('SIGHUP');
    assert.equal(await service.stop(), 0, service.log());
  } finally {
    await postgres.start();
  }
});
