import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * The servers that share this database, what one of them at a time may do, and the hosts on which a cluster has something of
 * ours, which every server must know of. And the oldest program that the schema serves.
 */
export const servers: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  // `directory`: which data directory it has, as one server at a time does.
  `create table servers (
    id text primary key not null,
    name text not null,
    version text not null,
    directory text not null,
    started_at text not null,
    seen_at text not null
  )`,
  // Rows stay, so that no token is ever given twice. Nobody's where `server_id` is null.
  `create table leases (
    name text primary key not null,
    server_id text,
    token integer not null,
    taken_at text not null
  )`,
  `create table managed_hosts (
    cluster_id text not null references clusters (id),
    address text not null,
    host text not null,
    primary key (cluster_id, address)
  )`,
  // One row: the last step of the oldest program that can work with this schema.
  `create table schema_support (
    oldest text primary key not null
  )`,
];
