/** The servers that share the database: the database's own clock says which are live, so that hosts agree. */
import { isSimulated } from '../../domain/clusters/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import {
  clockAhead,
  mostRemembered,
  rememberedMs,
  type Server,
  type ServerSettings,
  serverLifeMs,
  simulatedRefusal,
} from '../../domain/server.ts';
import { listDrivenClusters } from '../clusters/clusters.ts';
import { databaseTime } from '../engine/engine.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import {
  deleteRows,
  findRow,
  inCamelCase,
  insertRow,
  listRows,
  saveRow,
  updateRows,
} from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';

/** A server's own entry; `directory` stands for its data directory, which no other process has. */
export interface Entrant {
  name: string;
  version: string;
  directory: string;
  /** Settings that have to be the same on all servers. */
  settings: ServerSettings;
}

/** Registers this server as the only one, which leads and has all sessions. */
export async function enterAlone(tx: Tx, entrant: Entrant): Promise<void> {
  await tx.db.deleteFrom('servers').execute();
  await updateRows(tx.db, 'open_sessions', {}, { server_id: tx.server.id });
  await insert(tx, entrant, await databaseTime(tx.db));
  await saveRow(tx.db, 'leader', ['id'], { id: 1, server_id: tx.server.id, token: 0 });
}

/** Registers this server. An earlier one with the same directory is certainly gone: it does not lead, and its sessions are this one's. */
export async function enterServer(tx: Tx, entrant: Entrant): Promise<void> {
  const now = await databaseTime(tx.db);
  const { directory } = entrant;
  for (const { id } of await listRows(tx.db, 'servers', { directory }))
    await updateRows(tx.db, 'open_sessions', { server_id: id }, { server_id: tx.server.id });
  await tx.db
    .deleteFrom('servers')
    .where((eb) =>
      eb.or([
        eb('directory', '=', directory),
        eb('id', '=', tx.server.id),
        eb('seen_at', '<', toTime(now - rememberedMs)),
      ]),
    )
    .execute();
  await forgetMany(tx, now);
  await insert(tx, entrant, now);
}

async function insert({ db, server }: Tx, { settings, ...entrant }: Entrant, now: number): Promise<void> {
  const at = toTime(now);
  const known = { id: server.id, ...entrant, settings: JSON.stringify(settings) };
  await insertRow(db, 'servers', { ...known, started_at: at, seen_at: at });
}

/** Deletes servers that are gone, except for the last ones. */
async function forgetMany({ db }: Tx, now: number): Promise<void> {
  const gone = await db
    .selectFrom('servers')
    .select('id')
    .where('seen_at', '<', toTime(now - serverLifeMs))
    .orderBy('seen_at', 'desc')
    .execute();
  const ids = gone.slice(mostRemembered).map(({ id }) => id);
  if (ids.length > 0) await db.deleteFrom('servers').where('id', 'in', ids).execute();
}

/**
 * Updates when this server was seen, and its clock's difference where measured, without waiting for other writes.
 * False where it is not registered any more, and has to enter again.
 */
export async function renewServer(
  { writeOwn, read, server }: Pick<Store, 'writeOwn' | 'read' | 'server'>,
  clockDiffersMs?: number,
): Promise<boolean> {
  const at = toTime(await databaseTime(read));
  const rows = await writeOwn((db) =>
    db
      .updateTable('servers')
      .set({ seen_at: at, ...(clockDiffersMs !== undefined && { clock_differs_ms: clockDiffersMs }) })
      .where('id', '=', server.id)
      .returning('id')
      .execute(),
  );
  return rows.length > 0;
}

/** Whether this server was seen lately. */
export async function isSeen({ db, server }: Pick<Tx, 'db' | 'server'>, now: number): Promise<boolean> {
  const row = await findRow(db, 'servers', { id: server.id });
  return row !== undefined && row.seen_at > toTime(now - serverLifeMs);
}

/**
 * Locks the rows of servers that were not seen, so that one that renews itself at this moment waits until another
 * leads: only then can the former leader find out that it does not.
 */
export async function holdGone({ db }: Pick<Tx, 'db'>, now: number): Promise<void> {
  await db
    .updateTable('servers')
    .set((eb) => ({ seen_at: eb.ref('seen_at') }))
    .where('seen_at', '<=', toTime(now - serverLifeMs))
    .execute();
}

/** How many ms the database's clock is ahead of this server's, as `clockAhead` says. */
export async function measureClock(db: Reader, now: () => number): Promise<number> {
  const before = now();
  return clockAhead(await databaseTime(db), before, now());
}

/** Removes this server, and gives up the lead. */
export async function leaveServers(tx: Tx): Promise<void> {
  const { id } = tx.server;
  await updateRows(tx.db, 'leader', { server_id: id }, { server_id: null });
  await deleteRows(tx.db, 'servers', { id });
}

/** The servers in the order of their start; those that are gone for a while as well. */
export async function listServers({
  read: db,
  server,
}: Pick<Store, 'read'> & { server: Pick<Store['server'], 'id'> }): Promise<Server[]> {
  const now = await databaseTime(db);
  const rows = await db
    .selectFrom('servers as s')
    .leftJoin('leader as l', 'l.server_id', 's.id')
    .selectAll('s')
    .select('l.server_id as leader')
    .orderBy('s.started_at')
    .orderBy('s.id')
    .execute();
  return rows.map(({ leader, directory: _, ...row }) => {
    // The server that asks is live.
    const seenAt = row.id === server.id ? toTime(now) : row.seen_at;
    return {
      ...inCamelCase(row),
      seenAt,
      isLive: now - fromTime(seenAt) < serverLifeMs,
      leads: leader !== null,
      clockDiffersMs: row.clock_differs_ms ?? undefined,
      settings: settingsOf(row.settings),
    };
  });
}

/** The settings as far as they can be read: another version may have written them. */
function settingsOf(text: string): ServerSettings {
  const entries = Object.entries(Object(JSON.parse(text)));
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** The name of a server, also of one that is gone for a while; undefined where it is not registered. */
export async function findServer(db: Reader, id: string): Promise<string | undefined> {
  return (await findRow(db, 'servers', { id }))?.name;
}

/**
 * Throws `invalid_state` where there are simulated clusters and other servers: those clusters live in one server's
 * data directory.
 */
export async function refuseSimulated(tx: Tx): Promise<void> {
  if (tx.server.isAlone) return;
  const clusters = (await listDrivenClusters(tx.db)).filter(isSimulated);
  if (clusters.length === 0) return;
  const servers = await listServers({ read: tx.db, server: tx.server });
  const others = servers.filter(({ id, isLive }) => isLive && id !== tx.server.id);
  if (others.length === 0) return;
  const refusal = simulatedRefusal(
    clusters.map(({ name }) => name),
    others.map(({ name }) => name).sort(),
  );
  throw new DomainError('invalid_state', refusal);
}
