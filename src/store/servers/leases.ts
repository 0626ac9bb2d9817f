/**
 * Leases: for work that one server at a time does, such as to look after a side of a cluster. The database has the holder of
 * each, with a fencing token that rises each time a server takes the lease. A lease holds for as long as its server is seen, so
 * that one write renews all; writes in its name succeed only while the token is still the same.
 *
 * Where there can be no other server, this one has every lease, at no cost.
 */
import { serverLifeMs } from '../../domain/server.ts';
import { databaseTime } from '../engine/engine.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { findRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { holdGone, isSeen, renewServer } from './servers.ts';

export interface Lease {
  readonly name: string;
  /** Higher than all earlier ones of this lease. Undefined where there can be no other server. */
  readonly token: number | undefined;
  /** Its writes fail once another server has the lease. */
  readonly store: Store;
  /**
   * To be called right before a change outside the database, where no transaction checks the lease: throws where another
   * server may have it, by this server's clock or by the database.
   */
  confirm(): Promise<void>;
  /** As `confirm`, by this server's clock alone, for changes that their target fences by the token. */
  requireTime(): void;
}

export interface Duty {
  /** This server has the lease from now on. */
  begin(lease: Lease): void;
  /**
   * This server no longer has the lease: `lost` where another may have it already, `left` where this one gives it away. The duty
   * does not begin here again before this has resolved.
   */
  end(why: 'lost' | 'left'): Promise<void>;
}

export interface Leases {
  /** Whether all leases are always this server's. */
  readonly areAllHeld: boolean;
  /** Does a duty whenever this server has the lease of that name. Returns how to stop, which leaves the lease to others. */
  want(name: string, duty: Duty): () => Promise<void>;
}

/** Another server has the lease by now: nothing was written. */
export class LeaseLostError extends Error {
  constructor(name: string) {
    super(`Another server may do this by now (${name}); nothing was changed here.`);
  }
}

/** Where there can be no other server. */
export function allLeases(store: Store): Leases {
  return {
    areAllHeld: true,
    want(name, duty) {
      duty.begin({ name, token: undefined, store, async confirm() {}, requireTime() {} });
      return () => duty.end('left');
    },
  };
}

/** The store for work in the name of a lease. `onLost` is called when another server turns out to have the lease. */
export function storeOfLease(
  store: Store,
  { name, token }: { name: string; token: number },
  onLost: () => void,
): Store {
  return {
    ...store,
    write: (body, options) =>
      store
        .write(async (tx) => {
          const held = await findRow(tx.db, 'leases', { name, token, server_id: tx.server.id });
          if (!held) throw new LeaseLostError(name);
          return body(tx);
        }, options)
        .catch((error: unknown) => {
          if (error instanceof LeaseLostError) onLost();
          throw error;
        }),
  };
}

/** Throws, and calls `onLost`, where another server has the lease in the database. */
export async function requireLease(
  { read, server }: Pick<Store, 'read' | 'server'>,
  { name, token }: { name: string; token: number },
  onLost: () => void,
): Promise<void> {
  if (await findRow(read, 'leases', { name, token, server_id: server.id })) return;
  onLost();
  throw new LeaseLostError(name);
}

/** Renews this server (`renewServer`). The tokens of the leases that it has, by name; undefined where its row is gone. */
export async function renewLeases(
  store: Pick<Store, 'writeOwn' | 'read' | 'server'>,
  clockDiffersMs?: number,
): Promise<Map<string, number> | undefined> {
  if (!(await renewServer(store, clockDiffersMs))) return undefined;
  // After the renewal: a server that took leases because this one was not seen has committed that by now (`holdGone`).
  const rows = await listRows(store.read, 'leases', { server_id: store.server.id });
  return new Map(rows.map(({ name, token }) => [name, token]));
}

/** Leases held by this server or by no live server. */
export async function listFreeLeases(
  { read: db, server }: Pick<Store, 'read' | 'server'>,
  names: readonly string[],
): Promise<string[]> {
  return listFree(db, server.id, names, await databaseTime(db));
}

async function listFree(
  db: Reader,
  serverId: string,
  names: readonly string[],
  now: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('leases as l')
    .innerJoin('servers as s', 's.id', 'l.server_id')
    .select('l.name')
    .where('l.server_id', '!=', serverId)
    .where('s.seen_at', '>', toTime(now - serverLifeMs))
    .execute();
  const others = new Set(rows.map(({ name }) => name));
  return names.filter((name) => !others.has(name));
}

/** Takes the free ones of these leases; returns their tokens. None where this server was itself not seen lately. */
export async function takeLeases(tx: Tx, names: readonly string[]): Promise<Map<string, number>> {
  const taken = new Map<string, number>();
  const now = await databaseTime(tx.db);
  if (!(await isSeen(tx, now))) return taken;
  await holdGone(tx, now);
  for (const name of await listFree(tx.db, tx.server.id, names, now)) {
    // Not below the time, so that hosts take it for newer than tokens from before a restore of the database.
    const { token } = await tx.db
      .insertInto('leases')
      .values({ name, server_id: tx.server.id, token: Math.floor(now) })
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet((eb) => ({
          server_id: tx.server.id,
          token: eb
            .case()
            .when('leases.token', '<', Math.floor(now))
            .then(Math.floor(now))
            .else(eb('leases.token', '+', 1))
            .end(),
        })),
      )
      .returning('token')
      .executeTakeFirstOrThrow();
    taken.set(name, token);
  }
  return taken;
}

/** Releases those of these leases that this server has. */
export async function freeLeases(tx: Tx, names: readonly string[]): Promise<void> {
  for (const name of names)
    await updateRows(tx.db, 'leases', { name, server_id: tx.server.id }, { server_id: null });
}
