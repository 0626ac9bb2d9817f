/** A PostgreSQL with a streaming standby: which of several hosts is taken, what the log says of it, and a switchover. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { createLogger } from '../../../src/lib/log.ts';
import { parsePostgresUrl } from '../../../src/lib/postgres-url.ts';
import { appendAuditEntry } from '../../../src/store/audit.ts';
import { createConnector } from '../../../src/store/dialects/postgres-connect.ts';
import { requireUsable } from '../../../src/store/dialects/postgres-start.ts';
import { openStore } from '../../../src/store/index.ts';
import { systemUserId } from '../../../src/store/people.ts';
import { eventually } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { freePorts } from '../../support/ports.ts';
import { createPostgres, missingPostgres, type TestPostgres } from '../../support/postgres-server.ts';

const skip = missingPostgres() ?? false;
let primary: TestPostgres;
let standby: TestPostgres;
before(async () => {
  if (skip) return;
  const more = [
    ['wal_level', 'replica'],
    ['max_wal_senders', '4'],
    ['synchronous_commit', 'on'],
  ];
  const [port = 0] = await freePorts(1);
  primary = await createPostgres(undefined, { more });
  standby = await createPostgres(undefined, { more, port, of: primary });
});
after(async () => {
  await standby?.[Symbol.asyncDispose]();
  await primary?.[Symbol.asyncDispose]();
});

const socketOf = ({ directory, port }: TestPostgres) => `${directory}:${port}`;
const urlOf = (...hosts: string[]) =>
  `postgres://postgres@/andromeda?${new URLSearchParams({ host: hosts.join(',') })}`;
/** Nobody listens there. */
const down = () => join(primary.directory, 'nobody');

test('of several hosts, one that is down and one in recovery are left', { skip }, async () => {
  using directory = temporaryDirectory();
  const store = await openStore(directory.path, {
    database: urlOf(down(), socketOf(standby), socketOf(primary)),
  });
  try {
    const { rows } = await sql<{ port: string }>`select current_setting('port') as port`.execute(store.read);
    assert.deepEqual(rows, [{ port: `${primary.port}` }]);
  } finally {
    await store.close();
  }
  await assert.rejects(openStore(directory.path, { database: urlOf(down(), socketOf(standby)) }), {
    code: 'service_unavailable',
    message: /nobody: .*ENOENT.*; .*: it is a standby\.$/,
  });
});

/** What a server that starts now writes into its log. */
async function warnings(): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const target = parsePostgresUrl(urlOf(socketOf(primary)));
  const session = await createConnector(target)({ use: 'reading' });
  try {
    const log = createLogger('warn', (line) => void lines.push(JSON.parse(line)));
    await requireUsable(session, target, log);
    return lines;
  } finally {
    await session.close();
  }
}

const isWarnedOf = async (event: string) => (await warnings()).some((line) => line['event'] === event);

test('a clock that is off is warned of', { skip }, async (t) => {
  const real = Date.now;
  t.mock.method(Date, 'now', () => real() - 3_600_000);
  const line = (await warnings()).find(({ event }) => event === 'database.clock');
  assert.equal(Math.round(Number(line?.['differsMs']) / 600_000), 6);
});

test('without a synchronous standby that is warned of; with one, a switchover loses nothing', {
  skip,
}, async (t) => {
  assert.equal(await isWarnedOf('database.standby'), true);
  await waitForStandby();
  assert.equal(await isWarnedOf('database.standby'), false);

  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { database: urlOf(socketOf(primary), socketOf(standby)) });
  let isOver = false;
  const acknowledged: string[] = [];
  const writers = [1, 2, 3, 4].map(async (writer) => {
    for (let round = 0; !isOver; round++) {
      const target = `${writer}/${round}`;
      const isMade = await store
        .write((tx) => appendAuditEntry(tx, { ...entry, target }))
        .then(() => true)
        .catch((error: { code?: unknown }) => {
          assert.equal(error.code, 'service_unavailable');
          return false;
        });
      if (isMade) acknowledged.push(target);
      // Others are to come to the processor, too.
      await new Promise((done) => setTimeout(done, 5));
    }
  });
  const written = Promise.all(writers);
  // It is asked of further on.
  written.catch(() => {});
  t.after(async () => {
    isOver = true;
    await written.catch(() => {});
    await store.close();
    directory[Symbol.dispose]();
  });
  const more = async () => {
    const before = acknowledged.length;
    const grown = eventually(
      async () => acknowledged.length,
      (count) => count >= before + 20,
    );
    await Promise.race([grown, written]);
  };
  await more();
  await primary.stop('SIGQUIT');
  await standby.query('select pg_promote()');
  await more();
  isOver = true;
  await written;

  const { rows } = await sql<{ port: string }>`select current_setting('port') as port`.execute(store.read);
  assert.deepEqual(rows, [{ port: `${standby.port}` }]);
  const entries = await store.read.selectFrom('audit_entries').select('target').execute();
  const there = entries.map(({ target }) => target);
  assert.equal(new Set(there).size, there.length, 'nothing is there twice');
  assert.deepEqual(
    acknowledged.filter((target) => !there.includes(target)),
    [],
  );
});

const entry = {
  actorUserId: systemUserId,
  operation: 'test',
  reason: 'r',
  sourceAddress: '',
  result: 'done',
};

/** Has commits wait for the standby from now on. */
async function waitForStandby(): Promise<void> {
  await primary.query("alter system set synchronous_standby_names = '*'");
  await primary.query('select pg_reload_conf()');
  const ask = "select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'";
  await eventually(
    () => primary.query(ask),
    (rows) => rows.length === 1,
  );
  // The checkpointer is who makes commits wait; behind a checkpoint it has read the setting.
  await primary.query('checkpoint');
}
