/**
 * Rows with NUL, from before texts were kept free of it, on their way to a PostgreSQL, which stores none: U+FFFD takes its place.
 * An entry of the audit trail keeps its hash, and the installation's key vouches for what it says now, as for any redaction.
 */
import type { Kysely } from 'kysely';
import { type ChainedEntry, findBreak, type Redaction } from '../domain/audit.ts';
import { DomainError } from '../domain/error.ts';
import { withoutNulIn, withoutNuls } from '../domain/nul.ts';
import { withRedaction } from './audit.ts';
import { findCheckpoint } from './audit-heads.ts';
import type { Schema } from './schema.ts';
import { toTime } from './time.ts';

type Row = Record<string, unknown>;
type AuditRow = Omit<ChainedEntry, 'redaction'> & { redaction: string | null };

/** Vouches for an entry as it is given, behind an entry with the hash `previous`. */
export type SignRedaction = (previous: string, entry: ChainedEntry, at: string) => Redaction;

export interface NulMender {
  /** The rows as they can be stored. Pages of a table are given in their order. */
  mend(table: string, page: readonly Row[]): Row[];
  /** How many rows of each table had to be changed. */
  readonly counts: ReadonlyMap<string, number>;
}

/** `sign` is undefined where there is no key: entries of the trail with NUL are refused then. */
export async function createNulMender(
  source: Kysely<Schema>,
  sign: SignRedaction | undefined,
): Promise<NulMender> {
  const counts = new Map<string, number>();
  let last: { seq: number; hash: string } = (await findCheckpoint(source)) ?? { seq: 0, hash: '' };
  return {
    counts,
    mend(table, page) {
      return page.map((row) => {
        const before = last;
        if (table === 'audit_entries') last = row as unknown as AuditRow;
        const values = Object.values(row);
        if (withoutNuls(values) === values) return row;
        counts.set(table, (counts.get(table) ?? 0) + 1);
        return table === 'audit_entries'
          ? redacted(before, row as unknown as AuditRow, sign)
          : withoutNulIn(row);
      });
    },
  };
}

function redacted(
  before: { seq: number; hash: string },
  row: AuditRow,
  sign: SignRedaction | undefined,
): Row {
  const entry = withRedaction(row);
  // What was changed by somebody else is not vouched for.
  if (findBreak(before, [entry]))
    throw refusal(row, 'does not follow from the one before. `andromeda admin audit verify` says more');
  if (!sign)
    throw refusal(
      row,
      'has a NUL character, which PostgreSQL does not store, and there is no key to sign it without one. Start the service on this file once, which makes keys/audit_ed25519.pem, stop it, and repeat this',
    );
  const now = withoutNulIn(entry);
  return { ...now, redaction: JSON.stringify(sign(before.hash, now, toTime(Date.now()))) };
}

function refusal({ seq }: AuditRow, what: string): DomainError {
  return new DomainError(
    'invalid_state',
    `Entry ${seq} of the audit trail (table audit_entries) ${what}. Nothing was copied.`,
  );
}
