/** What writes wait for where they take too long, asked of PostgreSQL itself. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Obstacle } from './dialect.ts';
import type { Connect } from './postgres-connect.ts';
import { postgresFault } from './postgres-fault.ts';

/** Whoever is told of it waits for it. */
const askMs = 3_000;
/** Whoever waits no longer than this waits as everybody does. */
const usualSeconds = 1;
/** What our connections call themselves (`postgres-connect.ts`). */
const own = 'andromeda';

/** Asks on a connection of its own, for all others may be waiting. Never throws. */
export async function findObstacle(connect: Connect): Promise<Obstacle> {
  const late = new AbortController();
  const tooLate = wait(askMs, { reason: 'it does not answer' }, { signal: late.signal, ref: false });
  const asked = ask(connect).catch((error: unknown): Obstacle => {
    const detail = (error as Error).message;
    return postgresFault(error) === 'crowded'
      ? { reason: 'it takes no more connections (max_connections)', detail }
      : { reason: 'it cannot be reached', detail };
  });
  try {
    return await Promise.race([asked, tooLate]);
  } finally {
    late.abort();
    tooLate.catch(() => {});
  }
}

interface Activity {
  pid: number;
  name: string;
  /** Null for a Unix socket, and where it is another role's. */
  address: string | null;
  state: string | null;
  event: string | null;
  seconds: number | null;
  /** Process IDs with commas between them; empty where it waits for no lock. */
  blockers: string;
}

const question = `
  select pid, application_name as name, host(client_addr) as address, state, wait_event as event,
    extract(epoch from clock_timestamp() - coalesce(state_change, query_start))::float8 as seconds,
    case when wait_event_type = 'Lock' then array_to_string(pg_blocking_pids(pid), ',') else '' end as blockers
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`;

async function ask(connect: Connect): Promise<Obstacle> {
  const session = await connect({ use: 'reading' });
  try {
    const { rows } = await session.query(question);
    return obstacleOf(rows as Activity[]);
  } finally {
    await session.close();
  }
}

function obstacleOf(all: readonly Activity[]): Obstacle {
  const ours = all.filter(({ name, seconds }) => name === own && (seconds ?? 0) >= usualSeconds);
  if (ours.some(({ event }) => event === 'SyncRep'))
    return {
      reason: 'a synchronous standby is waited for, which does not answer',
      detail: 'Start the standby, or have whoever fails over take it out of synchronous_standby_names',
    };
  const byPid = new Map(all.map((one) => [one.pid, one]));
  const blockers = ours.flatMap((one) => pidsOf(one));
  // Whoever holds a lock may be waiting for another.
  const holder = blockers.find((pid) => pidsOf(byPid.get(pid)).length === 0);
  if (holder === undefined) return { reason: 'it takes too long for one row' };
  const about = byPid.get(holder);
  const who = holder === 0 ? 'a prepared transaction (pg_prepared_xacts)' : describe(holder, about);
  if (about?.name === own)
    return { reason: 'a write of one of the servers does not end', detail: `It is ${who}` };
  return {
    reason: 'another connection of it holds a lock',
    detail: `It is ${who}${holder === 0 ? '' : `; select pg_terminate_backend(${holder}) ends it`}`,
  };
}

function pidsOf(activity: Activity | undefined): number[] {
  return (activity?.blockers ?? '')
    .split(',')
    .filter((pid) => pid !== '')
    .map(Number);
}

function describe(pid: number, about: Activity | undefined): string {
  const { name = '', address, state, seconds } = about ?? {};
  const since = state ? [`${state} for ${Math.round(seconds ?? 0)} s`] : [];
  const facts = [name, ...(address ? [`from ${address}`] : []), ...since].filter((fact) => fact !== '');
  return `process ${pid}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`;
}
