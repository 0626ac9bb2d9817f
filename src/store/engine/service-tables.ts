/** What the service keeps for itself: sign-ins, the audit trail, sessions, servers and secrets. A part of `schema.ts`. */
import type { AuditRecord, SignedHead } from '../../domain/audit/audit.ts';

/** The embedded issuer's password of a person: a scrypt hash with its parameters. */
interface PasswordTable {
  user_id: string;
  hash: string;
  updated_at: string;
  /** How often it was changed. */
  generation: number;
}

/** What oidc-provider keeps (sessions, grants, device codes, tokens), by its model's name and ID. */
export interface IssuerRecordTable {
  model: string;
  id: string;
  payload: string;
  grant_id: string | null;
  user_code: string | null;
  uid: string | null;
  expires_at: number | null;
  consumed_at: number | null;
}

export interface ConsoleSessionTable {
  /** The SHA-256 of what the browser shows. */
  id: string;
  user_id: string;
  /** Its tokens, encrypted with what the browser shows. */
  sealed: string;
  address: string;
  program: string;
  created_at: string;
  seen_at: string;
  /** A server renews its tokens; no other does before this. */
  renewing_until: string | null;
}

/** A file of the console's pages, of whichever version. */
interface ConsoleFileTable {
  path: string;
  type: string;
  tag: string;
  /** Its content, packed with Brotli, in base64. */
  packed: string;
  /** When a server last answered with a page that names it. */
  named_at: string;
}

/** Tries by key, under a limit; times are ms since 1970. */
interface LimitCountTable {
  name: string;
  /** SHA-256 of it. */
  key: string;
  failures: number;
  /** Of the last failure, or when a rate is whole again. */
  at: number;
  expires_at: number;
}

// The servers that share the database, and what one of them at a time does.

interface ServerTable {
  id: string;
  name: string;
  version: string;
  /** Of its data directory: another server there is the one that came after. */
  directory: string;
  started_at: string;
  /** By the database's clock. */
  seen_at: string;
  /** By which the database's clock is ahead of its own; null until that was measured. */
  clock_differs_ms: number | null;
  /** What has to be the same on all servers, as JSON. */
  settings: string;
}

interface LeaseTable {
  name: string;
  /** Null: no server has it. */
  server_id: string | null;
  /** Rises each time a server takes it. */
  token: number;
}

/** A host that has something of ours. */
interface ManagedHostTable {
  cluster_id: string;
  address: string;
  /** As the driver describes it, as JSON. */
  host: string;
}

interface SchemaSupportTable {
  oldest: string;
}

// What went through the gateway, and revoked keys on their way out.

/** A session that has no closing entry in the audit trail yet. */
interface OpenSessionTable {
  id: string;
  /** The audit entry of its opening, as JSON. */
  entry: string;
  /** Whose it is. */
  server_id: string;
  /** Its server is to close it, with this word to the person. */
  closing: string | null;
  /** Its server was gone for so long that another closed it in the trail: the number of that entry, and when. */
  presumed_seq: number | null;
  presumed_at: string | null;
}

/** A session that is over. What is not known of it is null, as where the service was cut off. */
export interface PastSessionTable {
  /** Of the entry of its end in the audit trail. */
  seq: number;
  id: string;
  cluster_id: string;
  organization_id: string | null;
  user_id: string;
  username: string;
  key_id: string;
  fingerprint: string;
  remote_address: string;
  login_node: string;
  /** The job that the session ran in, and its node. */
  job: string | null;
  job_node: string | null;
  opened_at: string;
  closed_at: string;
  end_reason: string;
  bytes_up: number | null;
  bytes_down: number | null;
  shells: number | null;
  file_transfers: number | null;
  command_count: number | null;
  /** The first of them, as JSON. */
  commands: string;
  forward_count: number | null;
  /** JSON; "host:port", each once. */
  forwards: string;
}

/** A revoked key that a cluster has or had: the list version without it, and when the cluster first said that it has that. */
interface KeyDropTable {
  cluster_id: string;
  key_id: string;
  user_id: string;
  version: number;
  dropped_at: string | null;
}

/** The audit trail: append-only, written in the transaction of the change, each entry chained to the last. */
export interface AuditEntryTable extends AuditRecord {
  hash: string;
  /** The signed redaction, as JSON, where texts of the entry were replaced. */
  redaction: string | null;
}

/** How much of the trail a file has: up to which entry, and which of its heads. */
interface AuditCopyTable {
  file: string;
  entry_seq: number;
  head_seq: number;
}

/** A person whose names are being taken out of the audit trail; the names are kept until that is done. */
interface ErasureTable {
  user_id: string;
  /** JSON. */
  names: string;
  next_seq: number;
  until_seq: number;
}

/** A sign-in that an operator took from an account, and that is not bound again by its address. */
interface UnboundIdentityTable {
  issuer: string;
  subject: string;
  user_id: string;
  created_at: string;
}

/** Encrypted with a key that is not in the database. */
interface SecretTable {
  name: string;
  ciphertext: string;
  key_id: string;
  /** Rises with every change; authenticated with the text. */
  version: number;
  created_at: string;
  updated_at: string;
}

export interface ServiceSchema {
  passwords: PasswordTable;
  issuer_records: IssuerRecordTable;
  console_sessions: ConsoleSessionTable;
  console_files: ConsoleFileTable;
  limit_counts: LimitCountTable;
  servers: ServerTable;
  leases: LeaseTable;
  managed_hosts: ManagedHostTable;
  schema_support: SchemaSupportTable;
  open_sessions: OpenSessionTable;
  ssh_sessions: PastSessionTable;
  key_drops: KeyDropTable;
  audit_entries: AuditEntryTable;
  audit_heads: SignedHead;
  audit_checkpoints: SignedHead;
  erasures: ErasureTable;
  unbound_identities: UnboundIdentityTable;
  audit_copies: AuditCopyTable;
  secrets: SecretTable;
}
