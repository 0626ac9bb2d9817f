/**
 * The store on a PostgreSQL of this host's own against SQLite's file, in this process: a write that is answered when it is on
 * disk, writes of many at once, and one read. The service around it is the same on both.
 */
import { chmodSync } from 'node:fs';
import { appendAuditEntry } from '../../src/store/audit/audit.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { systemUserId } from '../../src/store/people/people.ts';
import { createPostgres, missingPostgres } from '../../test/support/postgres-server.ts';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import type { Report, Row } from './table.ts';

const rounds = 5;
const seconds = 1;
/** Rounds that do not count: V8 compiles what is hot, and statements are prepared. */
const warming = 1;
const atOnce = 8;
/** What a run of tests leaves out, and no installation. */
export const durable = ['fsync', 'full_page_writes', 'synchronous_commit'].map((name) => [name, 'on']);

export async function benchStore(scratch: Scratch): Promise<Report> {
  const missing = missingPostgres();
  if (missing !== undefined) return { rows: [], notes: [`store: left out: ${missing}.`] };
  // PostgreSQL runs as somebody else than root.
  chmodSync(scratch.dir, 0o711);
  await using postgres = await createPostgres(scratch.dir, { more: durable });
  await using stack = new AsyncDisposableStack();
  const open = async (name: string, database?: string) => {
    const store = await openStore(scratch.folder(name), { database });
    stack.defer(() => store.close());
    return store;
  };
  const shared = await open('store-postgres', postgres.url());
  const file = await open('store-sqlite');
  return { rows: await compare(shared, file), notes: [] };
}

async function compare(shared: Store, file: Store): Promise<Row[]> {
  const rows: Row[] = [];
  const measures: [row: string, count: number, step: (store: Store) => Promise<unknown>][] = [
    ['store: write', 1, write],
    [`store: ${atOnce} write at once`, atOnce, write],
    ['store: read', 1, read],
    [`store: ${atOnce} read at once`, atOnce, read],
  ];
  for (const [row, count, step] of measures) {
    const seen = await alternate(warming + rounds, {
      postgres: () => perSecond(count, () => step(shared)),
      sqlite: () => perSecond(count, () => step(file)),
    });
    const [ours, reference] = [seen.postgres.slice(warming), seen.sqlite.slice(warming)];
    rows.push({
      row,
      ours: `${median(ours).toFixed(0)}/s  PostgreSQL`,
      reference: `${median(reference).toFixed(0)}/s  SQLite`,
      ratio: medianRatio(ours, reference),
      aim: '',
    });
  }
  return rows;
}

const entry = {
  actorUserId: systemUserId,
  operation: 'bench',
  target: 'bench',
  reason: 'bench',
  sourceAddress: '',
  result: 'done',
};

const write = (store: Store) => store.write((tx) => appendAuditEntry(tx, entry));

const read = (store: Store) =>
  store.read.selectFrom('users').selectAll().where('id', '=', systemUserId).execute();

/** How often something is done, by so many at once. */
async function perSecond(count: number, step: () => Promise<unknown>): Promise<number> {
  let steps = 0;
  const began = performance.now();
  const until = began + seconds * 1000;
  const one = async () => {
    while (performance.now() < until) {
      await step();
      steps += 1;
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  return steps / ((performance.now() - began) / 1000);
}
