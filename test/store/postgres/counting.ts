/** A store whose writes are counted, so that one that is lost or made twice shows. */
import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import type { Store, Tx } from '../../../src/store/engine/index.ts';
import { updateRows } from '../../../src/store/engine/rows.ts';
import { eventually } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';

/** Each store has one of its own. */
export const newSchema = () => `s${randomBytes(6).toString('hex')}`;

export async function open(t: TestContext, url: string): Promise<Store> {
  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { database: url });
  t.after(async () => {
    await store.close();
    directory[Symbol.dispose]();
  });
  return store;
}

/** Adds one to what a write before it left. */
export async function count({ db }: Tx): Promise<number> {
  const { value } = await db.selectFrom('counters').select('value').executeTakeFirstOrThrow();
  await updateRows(db, 'counters', {}, { value: value + 1 });
  return value + 1;
}

/** As soon as it can be written to: what that makes of it. */
export const countsAgain = (store: Store) => eventually(() => store.write(count).catch(() => 0), Boolean);

export const counted = async ({ read }: Pick<Store, 'read'>) =>
  (await read.selectFrom('counters').select('value').executeTakeFirstOrThrow()).value;
