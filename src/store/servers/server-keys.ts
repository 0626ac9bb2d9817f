/** Which of the service's keys each server of a shared database has taken up. */
import { type AllKeysInUse, combinedInUse, type KeyKind, type KeysInUse } from '../../domain/key-rotation.ts';
import type { Store } from '../engine/index.ts';
import { insertRow, listRows } from '../engine/rows.ts';
import { listServers } from './servers.ts';

/** Notes what this server has taken up, and forgets what servers had that are gone. */
export async function noteServerKeys(store: Store, inUse: AllKeysInUse): Promise<void> {
  const { id } = store.server;
  const rows = Object.entries(inUse).map(([kind, one]) => ({
    server_id: id,
    kind,
    in_use: JSON.stringify(one),
  }));
  await store.write(async ({ db }) => {
    const servers = db.selectFrom('servers').select('id').where('id', '!=', id);
    await db.deleteFrom('server_keys').where('server_id', 'not in', servers).execute();
    for (const row of rows) await insertRow(db, 'server_keys', row);
  });
}

/** What every server that is there has taken up of a kind; undefined where none has. `current`: the key that is to be in use. */
export async function findSharedKeysInUse(
  store: Pick<Store, 'read' | 'server'>,
  kind: KeyKind,
  current: string,
): Promise<KeysInUse | undefined> {
  const live = new Set((await listServers(store)).flatMap(({ id, isLive }) => (isLive ? [id] : [])));
  const rows = await listRows(store.read, 'server_keys', { kind });
  return combinedInUse(
    rows.filter((row) => live.has(row.server_id)).map((row) => JSON.parse(row.in_use) as KeysInUse),
    current,
  );
}
