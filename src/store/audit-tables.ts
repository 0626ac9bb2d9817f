/** Tables of the audit trail, and of what is taken out of it and out of accounts: a part of `schema.ts`. */
import type { AuditRecord } from '../domain/audit-text.ts';

/** The audit trail: append-only, written in the transaction of what it tells of, each entry chained to the last. */
export interface AuditEntryTable extends AuditRecord {
  hash: string;
  /** The signed redaction, as JSON, where texts of the entry were replaced. */
  redaction: string | null;
}

/** How much of the trail a destination has been sent: up to which entry, and which of its heads. */
export interface AuditPositionTable {
  destination: string;
  entry_seq: number;
  entry_hash: string;
  head_seq: number;
}

/** A person whose names are being taken out of the audit trail; the names are kept until that is done. */
export interface ErasureTable {
  user_id: string;
  /** JSON. */
  names: string;
  next_seq: number;
  until_seq: number;
}

/** A sign-in that an operator took from an account, and that is not bound again by its address. */
export interface UnboundIdentityTable {
  issuer: string;
  subject: string;
  user_id: string;
  created_at: string;
}
