/** Views of a PostgreSQL that servers may use, for operators: what writes wait for, and what is in it. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import { describePostgres, parsePostgresUrl } from '../../../lib/postgres-url.ts';
import type { Schema } from '../../generated/schema.ts';
import type { Obstacle, SchemaObjects } from '../dialect.ts';
import { setQueries } from '../queries.ts';
import type { Result } from './connect.ts';
import { PostgresError, postgresFault } from './fault.ts';
import { kyselyOn, queriesOf } from './kysely.ts';
import { Primary, type TimelineNote } from './primary.ts';
import { asRefusal, connectFirst, requireUsable, unusable } from './start.ts';

/** Timeout for finding the obstacle, which a request waits for. */
const askMs = 3_000;
/** Shorter waits are normal. */
const usualSeconds = 1;
/** The `application_name` of our connections (`connect.ts`). */
const own = 'andromeda';

/** Asks on a connection of its own, for all others may be waiting. Never throws. */
export async function findObstacle(primary: Primary): Promise<Obstacle> {
  const asked = ask(primary).catch((error: unknown): Obstacle => {
    const detail = (error as Error).message;
    return postgresFault(error) === 'crowded'
      ? { reason: 'it takes no more connections (max_connections)', detail }
      : { reason: 'it cannot be reached', detail };
  });
  return Promise.race([asked, wait(askMs, { reason: 'it does not answer' }, { ref: false })]);
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

async function ask(primary: Primary): Promise<Obstacle> {
  await using session = await primary.connect('reading');
  const { rows } = await session.query(question);
  return obstacleOf(rows as Activity[]);
}

function obstacleOf(all: readonly Activity[]): Obstacle {
  const ours = all.filter(({ name, seconds }) => name === own && (seconds ?? 0) >= usualSeconds);
  if (ours.some(({ event }) => event === 'SyncRep'))
    return {
      reason: 'a synchronous standby is waited for, which does not answer',
      detail: 'Start the standby, or take it out of synchronous_standby_names',
    };
  const byPid = new Map(all.map((one) => [one.pid, one]));
  const blockers = ours.flatMap((one) => pidsOf(one));
  // The holder of a lock may itself wait for another.
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

export interface ServerView {
  name: string;
  reader: Kysely<Schema>;
  /** Lists nothing where the schema that the URL names does not exist yet. */
  listObjects(): Promise<SchemaObjects>;
  findObstacle(): Promise<Obstacle>;
  close(): Promise<void>;
}

/** Short timeouts: an inspection is not worth waiting long for a locked table. */
const setUp = `set default_transaction_read_only to on; set lock_timeout to '3s'; set statement_timeout to '10s'`;

/** Opens a view. Throws a `DomainError` with a sentence where a service could not use it; so do its later queries. */
export async function viewPostgres(url: string, timeline: TimelineNote | undefined): Promise<ServerView> {
  const target = parsePostgresUrl(url);
  const primary = new Primary(target, { timeline });
  const session = await connectFirst(primary, target, {});
  const run = async (sql: string, parameters: readonly unknown[] = []): Promise<Result> => {
    try {
      return await session.query(sql, parameters);
    } catch (error) {
      const refusal = asRefusal(error, target);
      if (!(refusal instanceof PostgresError)) throw refusal;
      const isLocked = refusal.sqlState === '55P03';
      const reason = isLocked ? 'another connection of it has locked a table (pg_locks)' : refusal.message;
      throw unusable(target, reason, 'service_unavailable');
    }
  };
  try {
    await session.script(setUp);
    await requireUsable(session, target, undefined);
  } catch (error) {
    await session.close();
    throw asRefusal(error, target);
  }
  const reader = kyselyOn<Schema>(async () => ({ run }));
  setQueries(reader, queriesOf(run));
  const rows = async <Row>(sql: string) => (await run(sql)).rows as Row[];
  return {
    name: describePostgres(target),
    reader,
    listObjects: () => listObjects(rows),
    findObstacle: () => findObstacle(primary),
    close: () => session.close(),
  };
}

const schema = '(select oid from pg_namespace where nspname = current_schema())';
/** Objects of an extension are no part of our schema. */
const isOwn = (oid: string) => `not exists (select 1 from pg_depend where objid = ${oid} and deptype = 'e')`;

const columns = `
  select c.relname as name, a.attname as column from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relnamespace = ${schema} and c.relkind in ('r', 'p') and ${isOwn('c.oid')}
  order by c.relname, a.attnum`;
const indexes = `select relname as name from pg_class where relnamespace = ${schema} and relkind = 'i'`;
const triggers = `
  select t.tgname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where c.relnamespace = ${schema} and not t.tgisinternal and t.tgenabled <> 'D'`;

async function listObjects(rows: <Row>(sql: string) => Promise<Row[]>): Promise<SchemaObjects> {
  const tables = new Map<string, string[]>();
  for (const { name, column } of await rows<{ name: string; column: string }>(columns)) {
    const known = tables.get(name);
    if (known) known.push(column);
    else tables.set(name, [column]);
  }
  // Tables that only this engine has: the write lock, and the channel to the other servers.
  for (const name of ['store_version', 'store_channel']) tables.delete(name);
  const names = async (sql: string) => new Set((await rows<{ name: string }>(sql)).map(({ name }) => name));
  return { tables, indexes: await names(indexes), triggers: await names(triggers) };
}
