/** Which of the service's keys each server of a shared database has taken up. */
import { combinedInUse, type KeyKind, type KeysInUse } from '../domain/key-rotation.ts';
import type { Reader, Store } from './index.ts';
import type { AllKeysInUse } from './keys-in-use.ts';

/** Notes what this server has taken up. */
export async function noteServerKeys(store: Store, inUse: AllKeysInUse): Promise<void> {
  const { id } = store.server;
  const rows = Object.entries(inUse).map(([kind, one]) => ({
    server_id: id,
    kind,
    in_use: JSON.stringify(one),
  }));
  await store.write(async ({ db }) => {
    await db.deleteFrom('server_keys').where('server_id', '=', id).execute();
    if (rows.length > 0) await db.insertInto('server_keys').values(rows).execute();
  });
}

/** What every server has taken up of a kind; undefined where none has. `current`: the key that is to be in use. */
export async function findSharedKeysInUse(
  db: Reader,
  kind: KeyKind,
  current: string,
): Promise<KeysInUse | undefined> {
  const rows = await db.selectFrom('server_keys').select('in_use').where('kind', '=', kind).execute();
  return combinedInUse(
    rows.map((row) => JSON.parse(row.in_use) as KeysInUse),
    current,
  );
}
