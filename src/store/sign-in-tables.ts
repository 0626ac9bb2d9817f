/** Tables of the embedded issuer and of the console's sign-ins: a part of `schema.ts`. */

/** The embedded issuer's password of a person: a scrypt hash with its parameters. */
export interface PasswordTable {
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
export interface ConsoleFileTable {
  path: string;
  type: string;
  tag: string;
  /** Its content, packed with Brotli, in base64. */
  packed: string;
  /** When a server last answered with a page that names it. */
  named_at: string;
}

/** Tries by key, under a limit; times are ms since 1970. */
export interface LimitCountTable {
  name: string;
  /** SHA-256 of it. */
  key: string;
  failures: number;
  /** Of the last failure, or when a rate is whole again. */
  at: number;
  expires_at: number;
}

export interface SignInSchema {
  passwords: PasswordTable;
  issuer_records: IssuerRecordTable;
  console_sessions: ConsoleSessionTable;
  console_files: ConsoleFileTable;
  limit_counts: LimitCountTable;
}
