/** A store in a directory of its own, filled from a lab. */
import type { AccessPolicy } from '../../src/domain/access-lapse.ts';
import type { Lab } from '../../src/domain/lab.ts';
import { createClock } from '../../src/lib/clock.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { createInstallation } from '../../src/store/installation.ts';
import { temporaryDirectory } from './directory.ts';

export interface TestStore extends AsyncDisposable {
  store: Store;
  dataDir: string;
}

/** `now`: the clock of its writes. `access`: when access lapses. */
export async function openTestStore(
  lab?: Lab,
  now?: () => number,
  access: AccessPolicy = {},
): Promise<TestStore> {
  const directory = temporaryDirectory();
  const store = await openStore(directory.path, { clock: createClock({ now }), access });
  if (lab) await createInstallation(store, lab, 'test');
  return {
    store,
    dataDir: directory.path,
    async [Symbol.asyncDispose]() {
      await store.close();
      directory[Symbol.dispose]();
    },
  };
}

/** The ID of a person in it. */
export async function userId(store: Store, email: string): Promise<string> {
  const row = await store.read
    .selectFrom('users')
    .select('id')
    .where('primary_email', '=', email)
    .executeTakeFirst();
  if (!row) throw new Error(`nobody is ${email}`);
  return row.id;
}
