/**
 * Migrations on PostgreSQL: the same ones, which are written for SQLite first. Statements that differ are translated
 * here: those with the type of whole numbers, and triggers.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { PostgresTarget } from '../../../lib/postgres-url.ts';
import type { Schema } from '../../generated/schema.ts';
import type { Result, Session } from './connect.ts';
import { MovedAway } from './fault.ts';
import { kyselyOn } from './kysely.ts';
import { channelTable, type Listening } from './listening.ts';
import type { Primary } from './primary.ts';
import { asRefusal, createAwayLog, type StartOptions, untilStopped } from './start.ts';

/** Any number that no other program takes for its advisory locks; the second one is the schema's. */
const lockClass = 1_634_626_675;

const versionTable = `
  create table if not exists store_version (one bigint primary key check (one = 1), version bigint not null);
  insert into store_version values (1, 0) on conflict do nothing`;

export interface MigratingOptions extends StartOptions {
  primary: Primary;
  listening: Listening;
  target: PostgresTarget;
}

const retryMs = 250;
/** Another server's migration is mostly done sooner, and not worth a line in the log. */
const silentMs = 2_000;
/** Asking for the lock takes milliseconds; a host silent for this long is gone, and this connection has no other timeout. */
const answerMs = 10_000;

/**
 * Runs a migration, while no other server does. Once it changes something, writes wait for it; when it is done,
 * everything counts as changed.
 */
export async function migrating<T>(
  { primary, listening, target, ...start }: MigratingOptions,
  body: (db: Kysely<Schema>) => Promise<T>,
): Promise<T> {
  await using session = await primary.connect('migrating');
  try {
    await takeLock(session, start);
    await prepareVersion(session, start);
    return await body(kyselyFor(session, listening));
  } catch (error) {
    throw asRefusal(error, target);
  }
}

/** Makes missing tables. Throws `invalid_state` where writes were ended: the deleted row is not made anew. */
async function prepareVersion(session: Session, { isCopying }: StartOptions): Promise<void> {
  const ask = async (sql: string) => (await session.query(sql)).rows as { is: boolean }[];
  const [table] = await ask(`select to_regclass('store_version') is not null as is`);
  if (!table?.is) await session.script(versionTable);
  else if (!isCopying && (await ask('select true as is from store_version')).length === 0)
    throw new MovedAway('invalid_state');
  const [channel] = await ask(`select to_regclass('store_channel') is not null as is`);
  if (!channel?.is) await session.script(channelTable());
}

/** Takes the lock of migrations. Waits for another server that has it, unless this one is to stop. */
async function takeLock(session: Session, { log, stopping }: StartOptions): Promise<void> {
  const began = performance.now();
  const away = log && createAwayLog(log);
  const stopped = untilStopped(stopping);
  for (;;) {
    const question = `select pg_try_advisory_lock(${lockClass}, hashtext(current_schema())) as taken`;
    const late = setTimeout(() => session.destroy(), answerMs);
    const { rows } = await session.query(question).finally(() => clearTimeout(late));
    if ((rows as { taken: boolean }[])[0]?.taken) return;
    if (away && performance.now() - began > silentMs) away.say(await whoHoldsIt(session));
    await Promise.race([wait(retryMs), stopped]);
  }
}

/** Names the lock's holder: any role that may connect can take it, so its role shows whether it is a server. */
async function whoHoldsIt(session: Session): Promise<string> {
  const { rows } = await session.query(`
    select a.pid, a.usename as role from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.classid = ${lockClass} and l.objsubid = 2
      and l.objid::bigint = hashtext(current_schema())::bigint & 4294967295
      and l.database = (select oid from pg_database where datname = current_database())`);
  const [holder] = rows as { pid: number; role: string | null }[];
  const whose = holder ? `; process ${holder.pid} of the role ${holder.role} has it` : '';
  return `Another server is bringing the database up to date (an advisory lock in pg_locks${whose}).`;
}

function kyselyFor(session: Session, listening: Listening): Kysely<Schema> {
  let isBegun = false;
  let version: number | undefined;
  async function run(sql: string, parameters: readonly unknown[]): Promise<Result> {
    if (/^\s*select/i.test(sql)) return session.query(sql, parameters);
    if (isBegun && version === undefined) {
      const lock = 'update store_version set version = version + 1 returning version';
      const { rows } = await session.query(lock);
      version = (rows as { version: number }[])[0]?.version ?? 0;
    }
    if (parameters.length > 0) return session.query(sql, parameters);
    const results = await session.script(translate(sql));
    return results.at(-1) ?? { rows: [], rowCount: null, command: '' };
  }
  return kyselyOn(async () => ({
    run,
    async begin() {
      await session.script('begin');
      isBegun = true;
      version = undefined;
    },
    async commit() {
      isBegun = false;
      const announcement =
        version === undefined ? '' : `${listening.notifying(version, [{ kind: 'everything' }])}; `;
      await session.script(`${announcement}commit`);
    },
    async rollback() {
      isBegun = false;
      await session.script('rollback').catch(() => session.destroy());
    },
  }));
}

/** Translates a statement of a migration into PostgreSQL's dialect. */
function translate(sql: string): string {
  const trigger = triggerPattern.exec(sql);
  if (trigger?.groups) return createTrigger(trigger.groups);
  if (/^\s*(create|alter) table/i.test(sql)) return sql.replaceAll(/\binteger\b/gi, 'bigint');
  return sql;
}

const triggerPattern =
  /^\s*create trigger (?<name>\w+)\s+(?<when>before|after) (?<event>insert|update|delete)(?<of> of \w+)? on (?<table>\w+)\s+(?:when (?<condition>[\s\S]*?)\s+)?begin\s+(?<body>[\s\S]*?);?\s*end\s*$/i;

function createTrigger(parts: Record<string, string | undefined>): string {
  const { name, when, event, of = '', table, condition, body = '' } = parts;
  const statements = body
    .replaceAll(/select raise\(abort, ('[^']*')\)/gi, 'raise exception $1')
    // In PostgreSQL a bare column is ambiguous: of the existing row, or of the new one.
    .replaceAll(
      /(insert into (\w+)[\s\S]*do update set (\w+) = )(\w+ \+ 1)/gi,
      (_, before, into, _column, sum) => `${before}${into}.${sum}`,
    );
  const guarded =
    condition === undefined
      ? `${statements};`
      : `if ${condition.replaceAll(/\bis not (?=old\.|new\.)/gi, 'is distinct from ')} then ${statements}; end if;`;
  return `
    create or replace function ${name}() returns trigger language plpgsql as $trigger$
      begin ${guarded} return coalesce(new, old); end $trigger$;
    create trigger ${name} ${when} ${event}${of} on ${table} for each row execute function ${name}()`;
}
