/** A PostgreSQL to look at, whoever uses it: one connection that writes nothing, and what its schema has. */
import type { Kysely } from 'kysely';
import { describePostgres, parsePostgresUrl } from '../../lib/postgres-url.ts';
import type { Schema } from '../schema.ts';
import type { Obstacle, SchemaObjects } from './dialect.ts';
import { createConnector } from './postgres-connect.ts';
import { PostgresError } from './postgres-fault.ts';
import { kyselyOn, queriesOf } from './postgres-kysely.ts';
import { findObstacle } from './postgres-obstacle.ts';
import type { Result } from './postgres-session.ts';
import { asRefusal, connectFirst, requireUsable, unusable } from './postgres-start.ts';
import { setQueries } from './queries.ts';

export interface ServerView {
  /** Where it is, for messages. */
  name: string;
  reader: Kysely<Schema>;
  /** None where the schema that the URL names is not there yet. */
  listObjects(): Promise<SchemaObjects>;
  findObstacle(): Promise<Obstacle>;
  close(): Promise<void>;
}

/** A locked table keeps nobody who only looks for longer. */
const setUp = `set default_transaction_read_only to on; set lock_timeout to '3s'; set statement_timeout to '10s'`;

/** Opens it. Throws a `DomainError` with a sentence where a service could not use it, also in what is asked later. */
export async function viewPostgres(url: string): Promise<ServerView> {
  const target = parsePostgresUrl(url);
  const connect = createConnector(target);
  const session = await connectFirst(connect, target, {});
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
  const reader = kyselyOn<Schema>({ acquire: async () => ({ run }) });
  setQueries(reader, queriesOf(run));
  const rows = async <Row>(sql: string) => (await run(sql)).rows as Row[];
  return {
    name: describePostgres(target),
    reader,
    listObjects: () => listObjects(rows),
    findObstacle: () => findObstacle(connect),
    close: () => session.close(),
  };
}

const schema = '(select oid from pg_namespace where nspname = current_schema())';
/** What an extension has put there is not of anybody's schema. */
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
  // The lock of writes, and the channel to the others, which only this engine has.
  for (const name of ['store_version', 'store_channel']) tables.delete(name);
  const names = async (sql: string) => new Set((await rows<{ name: string }>(sql)).map(({ name }) => name));
  return { tables, indexes: await names(indexes), triggers: await names(triggers) };
}
