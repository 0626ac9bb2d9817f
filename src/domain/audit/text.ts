/**
 * What the hashes and signatures of the audit trail are made over, as text: without cryptography, so that a browser can
 * check a trail by its own means.
 */

/**
 * An entry without its hash. The field names are the same in the table, in the API, in copies, and in programs that verify
 * the chain. Unknown values are null.
 */
export interface AuditRecord {
  seq: number;
  /** RFC 3339. */
  at: string;
  actor_user_id: string;
  command_id: string | null;
  operation: string;
  target: string;
  organization_id: string | null;
  cluster_id: string | null;
  /** The person it was done to. */
  subject_user_id: string | null;
  reason: string;
  source_address: string;
  /** `done`, or `refused: ` and the error code. */
  result: string;
  /** What changed, for people. */
  details: string;
}

type Nullable = 'command_id' | 'organization_id' | 'cluster_id' | 'subject_user_id';
/** As the API has it: what is not known is left out. */
export type AuditFields = Omit<AuditRecord, Nullable> & { [Name in Nullable]?: string | null };

/** What the hash of an entry is made over, behind the hash of the one before it. */
export function auditText(previous: string, entry: AuditFields): string {
  return JSON.stringify([
    previous,
    entry.seq,
    entry.at,
    entry.actor_user_id,
    entry.command_id ?? null,
    entry.operation,
    entry.target,
    entry.organization_id ?? null,
    entry.cluster_id ?? null,
    entry.subject_user_id ?? null,
    entry.reason,
    entry.source_address,
    entry.result,
    entry.details,
  ]);
}

export interface AuditHead {
  seq: number;
  /** Of that entry, as `auditHash` makes it. */
  hash: string;
  /** When it was signed, RFC 3339. */
  at: string;
}

/** What is signed of a head. */
export function headText({ seq, hash, at }: AuditHead): string {
  return `andromeda audit head\n${seq}\n${hash}\n${at}\n`;
}

/** What is signed of a checkpoint. */
export function checkpointText({ seq, hash, at }: AuditHead): string {
  return `andromeda audit checkpoint\n${seq}\n${hash}\n${at}\n`;
}

/**
 * What is signed of a redaction: the entry as it is now (its hash behind ''), between the hash before it and its own. `accepted`: of
 * a break that was accepted, which is no redaction by its signature either.
 */
export function redactionTextOf(entry: {
  seq: number;
  previous: string;
  hash: string;
  now: string;
  at: string;
  accepted: true | undefined;
}): string {
  const { seq, previous, hash, now, at, accepted } = entry;
  return `andromeda audit ${accepted ? 'accepted break' : 'redaction'}\n${seq}\n${previous}\n${hash}\n${now}\n${at}\n`;
}
