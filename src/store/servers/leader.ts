/**
 * The leader: the one of the servers sharing a database that does what is done once for all of them. The database
 * records it, with a fencing token that rises each time a server takes the lead. A server leads for as long as it is
 * seen, and its writes as the leader succeed only while the token is still its own.
 */
import { serverLifeMs } from '../../domain/server.ts';
import { databaseTime } from '../engine/engine.ts';
import type { Reader, Store, Tx } from '../engine/index.ts';
import { findRow, saveRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { holdGone, isSeen } from './servers.ts';

/** The lead of this server, from taking it until its work as the leader has ended. */
export interface Lead {
  /** Higher than that of each leader before. Undefined where there can be no other server. */
  readonly token: number | undefined;
  /** Its writes fail once another server has taken the lead. */
  readonly store: Store;
  /**
   * Call it right before a change outside the database, where no transaction checks the token: it throws where another
   * server may lead, by this server's clock or by the database.
   */
  confirm(): Promise<void>;
  /** As `confirm`, by this server's clock alone, for changes that their target fences by the token. */
  requireTime(): void;
}

/** Another server leads by now: nothing was written. */
export class NotLeaderError extends Error {
  constructor() {
    super('Another server may lead by now; nothing was changed here.');
  }
}

/** The lead where there can be no other server. */
export function onlyLead(store: Store): Lead {
  return { token: undefined, store, async confirm() {}, requireTime() {} };
}

const only = { id: 1 };

/** The store for the leader's work. `onLost` is called when another server turns out to have the lead. */
export function storeOfLeader(store: Store, token: number, onLost: () => void): Store {
  return {
    ...store,
    write: (body, options) =>
      store
        .write(async (tx) => {
          if (!(await findRow(tx.db, 'leader', { ...only, token, server_id: tx.server.id })))
            throw new NotLeaderError();
          return body(tx);
        }, options)
        .catch((error: unknown) => {
          if (error instanceof NotLeaderError) onLost();
          throw error;
        }),
    writeOwn: () => Promise.reject(new Error('what the leader writes is checked in its transaction')),
  };
}

/** The token of this server's lead; undefined where it has none. */
export async function findToken({
  read,
  server,
}: Pick<Store, 'read' | 'server'>): Promise<number | undefined> {
  return (await findRow(read, 'leader', { ...only, server_id: server.id }))?.token;
}

/** Whether this server can take the lead: it has it already, or no live server has it. */
export async function isLeadFree({ read, server }: Pick<Store, 'read' | 'server'>): Promise<boolean> {
  return isFree(read, server.id, await databaseTime(read));
}

async function isFree(db: Reader, serverId: string, now: number): Promise<boolean> {
  const other = await db
    .selectFrom('leader as l')
    .innerJoin('servers as s', 's.id', 'l.server_id')
    .select('s.id')
    .where('s.id', '!=', serverId)
    .where('s.seen_at', '>', toTime(now - serverLifeMs))
    .executeTakeFirst();
  return !other;
}

/** Takes the lead where it is free; returns the token. Undefined also where this server itself was not seen lately. */
export async function takeLead(tx: Tx): Promise<number | undefined> {
  const now = await databaseTime(tx.db);
  if (!(await isSeen(tx, now))) return undefined;
  await holdGone(tx, now);
  if (!(await isFree(tx.db, tx.server.id, now))) return undefined;
  const last = await findRow(tx.db, 'leader', only);
  // Not below the time, so that hosts take it for newer than tokens from before a restore of the database.
  const token = Math.max(Math.floor(now), (last?.token ?? 0) + 1);
  await saveRow(tx.db, 'leader', ['id'], { ...only, server_id: tx.server.id, token });
  return token;
}

/** Gives up the lead, if this server has it. */
export async function leaveLead({ db, server }: Pick<Tx, 'db' | 'server'>): Promise<void> {
  await updateRows(db, 'leader', { ...only, server_id: server.id }, { server_id: null });
}
