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
}

export interface SignInSchema {
  passwords: PasswordTable;
  issuer_records: IssuerRecordTable;
  console_sessions: ConsoleSessionTable;
}
