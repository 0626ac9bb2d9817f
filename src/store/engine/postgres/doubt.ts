/** What became of a commit whose answer was lost, as the database says, and whether a standby has it. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Session, Warning } from './connect.ts';
import { PostgresError } from './fault.ts';
import type { Primary } from './primary.ts';

export interface Committing {
  /** Its number, by which it can be asked afterwards what became of it. */
  readonly xid: string;
  /** The run of PostgreSQL that gave the number. */
  readonly incarnation: string;
  /** Whether it was to be on the disks of standbys, too. */
  readonly flush: boolean;
}

/** How long the database is asked; the caller of the write waits that long. */
const doubtMs = 10_000;
const betweenAsksMs = 100;

/** Undefined where the database cannot say, or no standby takes what is written. */
export async function outcomeOf(
  asked: Committing,
  primary: Primary,
): Promise<'committed' | 'aborted' | undefined> {
  const until = performance.now() + doubtMs;
  do {
    const status = await ask(asked, primary, until).catch(() => 'in progress');
    if (status === 'committed' || status === 'aborted') return status;
    if (status === null) return undefined;
    await wait(betweenAsksMs);
  } while (performance.now() < until);
  return undefined;
}

async function ask(asked: Committing, primary: Primary, until: number): Promise<string | null> {
  let isAlone = false;
  const session = await primary.connect('writing');
  session.on('warning', (warning) => {
    if (isOfStandby(warning)) isAlone = true;
  });
  const leftMs = Math.max(1, Math.round(until - performance.now()));
  const late = setTimeout(() => session.destroy(), leftMs);
  try {
    const status = await statusOf(session, asked);
    if (status !== 'committed' || !asked.flush) return status;
    const isWritten = await writeBehind(session, leftMs);
    return isWritten && !isAlone ? status : 'in progress';
  } catch (error) {
    // A server that took over has not come to this number: what had it is not there.
    if (error instanceof PostgresError && error.sqlState === '22023') return 'aborted';
    throw error;
  } finally {
    clearTimeout(late);
    await session.close();
  }
}

async function statusOf(session: Session, asked: Committing): Promise<string | null> {
  const { rows } = await session.query(
    `select pg_xact_status($1::xid8) as status, ${incarnation} as incarnation`,
    [asked.xid],
  );
  const [row] = rows as { status: string | null; incarnation: string }[];
  // The number may be another transaction's by now, of which we would say that it was ours.
  if (row?.status === 'committed' && row.incarnation !== asked.incarnation) return null;
  return row?.status ?? null;
}

/**
 * Commits a write of our own, which changes nothing. One that ended while it waited for its standby is committed here, and
 * on this host alone; a standby that has this write has all that was committed before.
 */
async function writeBehind(session: Session, leftMs: number): Promise<boolean> {
  const results = await session.script(
    `begin; set local lock_timeout to ${leftMs}; update store_version set version = version; commit`,
  );
  return results.at(-2)?.rowCount === 1 && results.at(-1)?.command === 'COMMIT';
}

/** Whether a commit was answered that is on this host alone. Texts of warnings are in the database's language. */
export function isOfStandby({ message, routine }: Warning): boolean {
  return routine === 'SyncRepWaitForLSN' || message.includes('synchronous replication');
}

/**
 * What differs between one run of PostgreSQL and the next: its start, its timeline, and its last statistics reset, which also
 * follows a crash of one of its processes. After a crash or a failover, PostgreSQL can give the number of a lost transaction to another one.
 */
const incarnation = `extract(epoch from pg_postmaster_start_time())::text
  || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  || ' ' || coalesce((select extract(epoch from stats_reset)::text from pg_stat_bgwriter), '')`;

export async function incarnationOf(session: Session): Promise<string> {
  const { rows } = await session.query(`select ${incarnation} as incarnation`);
  return (rows as { incarnation: string }[])[0]?.incarnation ?? '';
}
