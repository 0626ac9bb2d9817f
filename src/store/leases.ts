/**
 * Leases: what one server at a time does, such as to look after a side of a cluster. Who has one is in the database, with a
 * token that is higher whenever somebody takes it. A lease holds for as long as its server is seen, so that one write
 * renews all; and what is written in its name is written only while the token is still the same.
 *
 * Where there can be no other server, everything is this one's, and none of it costs anything.
 */
import { serverLifeMs } from '../domain/server.ts';
import { databaseTime } from './engine.ts';
import type { Reader, Store, Tx } from './index.ts';
import { prepared } from './prepared.ts';
import { holdGone, isSeen, renewServer } from './servers.ts';
import { toTime } from './time.ts';

/** A lease that this server has. */
export interface Lease {
  readonly name: string;
  /** Higher than all that others had before. Undefined where there can be no other server. */
  readonly token: number | undefined;
  /** Its writes fail once somebody else has the lease. */
  readonly store: Store;
  /**
   * To be asked right before something is changed elsewhere, where no transaction looks: throws where another server may have
   * the lease, by this server's clock or by the database.
   */
  confirm(): Promise<void>;
  /** As `confirm`, by this server's clock alone, for what is fenced by the token where it comes to. */
  requireTime(): void;
}

export interface Duty {
  /** This server has the lease from now on. */
  begin(lease: Lease): void;
  /**
   * It has it no more: `lost` where another may have it already, `left` where it gives it away. Nobody begins here again before
   * this has resolved.
   */
  end(why: 'lost' | 'left'): Promise<void>;
}

export interface Leases {
  /** Whether all leases are always this server's. */
  readonly areAllHeld: boolean;
  /** From now on does a duty whenever it has the lease of that name. Returns how to end that, which leaves it to others. */
  want(name: string, duty: Duty): () => Promise<void>;
}

/** Another server has the lease by now: nothing was written. */
export class LeaseLostError extends Error {
  constructor(name: string) {
    super(`Another server may do this by now (${name}); nothing was changed here.`);
  }
}

/** Of a server that has no others. */
export function allLeases(store: Store): Leases {
  return {
    areAllHeld: true,
    want(name, duty) {
      duty.begin({ name, token: undefined, store, async confirm() {}, requireTime() {} });
      return () => duty.end('left');
    },
  };
}

/** The store for what is done in the name of a lease. `onLost` is called when it turns out to be another's. */
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
          const [row] = await heldLease(tx.db, name, token, tx.server.id);
          if (!row) throw new LeaseLostError(name);
          return body(tx);
        }, options)
        .catch((error: unknown) => {
          if (error instanceof LeaseLostError) onLost();
          throw error;
        }),
  };
}

/** Throws, and calls `onLost`, where the database gives the lease to another by now. */
export async function requireLease(
  { read, server }: Pick<Store, 'read' | 'server'>,
  { name, token }: { name: string; token: number },
  onLost: () => void,
): Promise<void> {
  const [row] = await heldLease(read, name, token, server.id);
  if (row) return;
  onLost();
  throw new LeaseLostError(name);
}

const heldLease = prepared((db, name: string, token: number, serverId: string) =>
  db
    .selectFrom('leases')
    .select('token')
    .where('name', '=', name)
    .where('token', '=', token)
    .where('server_id', '=', serverId),
);

/** Renews this server (`renewServer`). The tokens of the leases that it has, by name; undefined where it is written down no more. */
export async function renewLeases(
  store: Pick<Store, 'writeOwn' | 'read' | 'server'>,
  clockDiffersMs?: number,
): Promise<Map<string, number> | undefined> {
  if (!(await renewServer(store, clockDiffersMs))) return undefined;
  // Behind it: whoever took leases because this server was not seen has committed that by now (`holdGone`).
  const rows = await store.read
    .selectFrom('leases')
    .select(['name', 'token'])
    .where('server_id', '=', store.server.id)
    .execute();
  return new Map(rows.map(({ name, token }) => [name, token]));
}

/** Names in one statement: few enough for every database. */
const pageSize = 200;

/** Of these leases, those that are not another server's: nobody ever had them, or whoever did left them or is gone. */
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
  const others = new Set<string>();
  for (let first = 0; first < names.length; first += pageSize) {
    const rows = await db
      .selectFrom('leases as l')
      .innerJoin('servers as s', 's.id', 'l.server_id')
      .select('l.name')
      .where('l.name', 'in', names.slice(first, first + pageSize))
      .where('l.server_id', '!=', serverId)
      .where('s.seen_at', '>', toTime(now - serverLifeMs))
      .execute();
    for (const { name } of rows) others.add(name);
  }
  return names.filter((name) => !others.has(name));
}

/** Takes those of these leases that are not another's; returns their tokens. None where this server was not seen lately itself. */
export async function takeLeases(tx: Tx, names: readonly string[]): Promise<Map<string, number>> {
  const taken = new Map<string, number>();
  const now = await databaseTime(tx.db);
  if (!(await isSeen(tx, now))) return taken;
  await holdGone(tx, now);
  for (const name of await listFree(tx.db, tx.server.id, names, now)) {
    // Not below the time, so that hosts take it for newer than what a database had that was restored since.
    const { token } = await tx.db
      .insertInto('leases')
      .values({ name, server_id: tx.server.id, token: Math.floor(now), taken_at: toTime(now) })
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet((eb) => ({
          server_id: tx.server.id,
          token: eb
            .case()
            .when('leases.token', '<', Math.floor(now))
            .then(Math.floor(now))
            .else(eb('leases.token', '+', 1))
            .end(),
          taken_at: toTime(now),
        })),
      )
      .returning('token')
      .executeTakeFirstOrThrow();
    taken.set(name, token);
  }
  return taken;
}

/** Leaves to others what this server has of these leases. */
export async function freeLeases(tx: Tx, names: readonly string[]): Promise<void> {
  for (let first = 0; first < names.length; first += pageSize)
    await tx.db
      .updateTable('leases')
      .set({ server_id: null })
      .where('server_id', '=', tx.server.id)
      .where('name', 'in', names.slice(first, first + pageSize))
      .execute();
}
