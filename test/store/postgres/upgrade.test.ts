/** Rolling upgrades: programs of two versions on one database, side by side. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeSecretsKey } from '../../../src/lib/secrets-key.ts';
import type { SchemaState } from '../../../src/service/host/unit/schema-process.ts';
import { lossOf } from '../../../src/service/host/unit/upgrade.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import type { Store } from '../../../src/store/engine/index.ts';
import type { KnownSchema } from '../../../src/store/engine/migrate.ts';
import { migrations, oldestServed } from '../../../src/store/migrations/index.ts';
import {
  createOrganization,
  findOrganizationBySlug,
} from '../../../src/store/organizations/organizations.ts';
import { systemUserId } from '../../../src/store/people/people.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { runProgram } from '../../support/program.ts';
import { ancient, newest, statements } from '../../support/schemas.ts';
import { postgres, test, usePostgres } from './server.ts';

usePostgres();

const current: KnownSchema = { migrations, oldestServed };
/** The version that comes next: it adds a table and a column. */
const next: KnownSchema = {
  migrations: {
    ...migrations,
    '9998-next': statements('create table rooms (id text primary key not null, size integer not null)'),
    '9999-next': statements("alter table organizations add column room text default 'hall'"),
  },
  oldestServed: newest,
};
/** The one behind that, which serves the next one only. */
const afterNext: KnownSchema = {
  migrations: {
    ...next.migrations,
    '9999-then': statements('alter table organizations add column wing text'),
  },
  oldestServed: '9999-next',
};

let schemas = 0;
/** Opens stores of one new schema. */
function opening() {
  const schema = `u${++schemas}`;
  const stack = new AsyncDisposableStack();
  return {
    schema,
    async open(known: KnownSchema) {
      const directory = stack.use(temporaryDirectory());
      const store = await openStore(directory.path, { database: postgres.url({ schema }), schema: known });
      stack.defer(() => store.close());
      return store;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const create = ({ write }: Store, slug: string) =>
  write((tx) =>
    createOrganization(tx, { slug, displayName: slug, autoJoinDomains: [], createdBy: systemUserId }),
  );

test('a server of the next version brings the schema further, and those of this one go on and start', async () => {
  await using one = opening();
  const running = await one.open(current);
  await create(running, 'before');
  const upgraded = await one.open(next);
  for (const [slug, store] of Object.entries({ old: running, new: upgraded })) await create(store, slug);
  // One that is started again in the middle of the upgrade.
  const again = await one.open(current);
  await create(again, 'again');
  for (const store of [running, upgraded, again])
    for (const slug of ['before', 'old', 'new', 'again'])
      assert.equal((await findOrganizationBySlug(store.read, slug))?.slug, slug);
  const rows = await postgres.query<{ room: string }>(
    `select distinct room from ${one.schema}.organizations`,
  );
  assert.deepEqual(rows, [{ room: 'hall' }]);
});

test('a server that is two versions behind is refused, in words', async () => {
  await using one = opening();
  await one.open(afterNext);
  await one.open(next);
  await assert.rejects(
    one.open(current),
    /was written by a newer version of Andromeda\. It serves the version before that and no older one: upgrade this server\./,
  );
});

test('a database from before 0.3.0 is refused in words, by a start and by check', async () => {
  await using one = opening();
  await one.open(current);
  await postgres.query(`set search_path to ${one.schema}; ${ancient}`);
  const refusal =
    /was written by a version of Andromeda before 0\.3\.0, which this one cannot read\. Start that version/;
  await assert.rejects(one.open(current), refusal);
  using directory = temporaryDirectory();
  const config = join(directory.path, 'andromeda.yaml');
  const settings = { dataDir: './data', database: postgres.url({ schema: one.schema }) };
  writeFileSync(config, JSON.stringify(settings), { mode: 0o600 });
  const { status, out } = await runProgram('check', '--quiet', '--config', config);
  assert.equal(status, 1);
  assert.match(out, new RegExp(`^wrong +database +.*${refusal.source}`, 'm'));
});

test('service rollback leaves a shared database that the version before works with as it is, and refuses in words where it does not', async () => {
  await using one = opening();
  using directory = temporaryDirectory();
  const config = join(directory.path, 'andromeda.yaml');
  const settings = { dataDir: './data', database: postgres.url({ schema: one.schema }) };
  writeFileSync(join(directory.path, 'key'), makeSecretsKey(), { mode: 0o600 });
  writeFileSync(config, JSON.stringify({ ...settings, secretsKeyFile: './key' }));
  const lossFor = async (schema: string | undefined) => {
    const { out, err } = await runProgram('schema-process', config, 'inspect', schema ?? '');
    const { answer } = JSON.parse(out || JSON.stringify({ err })) as { answer: SchemaState };
    return lossOf({ version: '0.2.0', schema }, answer);
  };
  assert.equal(await lossFor(undefined), undefined);
  await one.open(current);
  assert.equal(await lossFor(newest), undefined);
  await one.open(next);
  assert.equal(await lossFor(newest), undefined);
  await one.open(afterNext);
  await assert.rejects(lossFor(newest), {
    code: 'invalid_state',
    message:
      /^The shared database has a schema that 0\.2\.0 does not work with, and there is no copy of it here\. .* Nothing was changed\.$/,
  });
});
