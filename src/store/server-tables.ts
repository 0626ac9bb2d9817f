/** Tables of the servers that share the database, and of what one of them at a time does: a part of `schema.ts`. */

export interface ServerTable {
  id: string;
  name: string;
  version: string;
  /** Of its data directory: another server there is the one that came after. */
  directory: string;
  started_at: string;
  /** By the database's clock. */
  seen_at: string;
  /** By which the database's clock is ahead of its own; null of a version that does not say so. */
  clock_differs_ms: number | null;
  /** What has to be the same on all servers, as JSON; null likewise. */
  settings: string | null;
}

export interface LeaseTable {
  name: string;
  /** Null: nobody has it. */
  server_id: string | null;
  /** Higher whenever somebody takes it. */
  token: number;
  taken_at: string;
}

/** A host that has something of ours. */
export interface ManagedHostTable {
  cluster_id: string;
  address: string;
  /** As the driver describes it, as JSON. */
  host: string;
}

export interface SchemaSupportTable {
  oldest: string;
}

export interface ServerSchema {
  servers: ServerTable;
  leases: LeaseTable;
  managed_hosts: ManagedHostTable;
  schema_support: SchemaSupportTable;
}
