import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * How often each password was changed, which sign-ins are compared with. Those that were over by the time of the last
 * change go: they name no number, which counts as 0.
 */
export const passwordGenerations: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw('alter table passwords add column generation integer not null default 0').execute(db);
    await sql
      .raw(`delete from issuer_records where model in ('RefreshToken', 'DeviceCode') and exists (
        select 1 from passwords where user_id = issuer_records.payload ->> '$.accountId'
        and cast(strftime('%s', updated_at) as integer) > issuer_records.payload ->> '$.authTime')`)
      .execute(db);
  },
};
