/** What a copy of the trail has: entries and signed heads, each as one line of JSON, in batches that are bounded in number and bytes. */
import type { SignedHead } from '../../domain/audit/audit.ts';
import {
  type AuditListing,
  type AuditPosition,
  listAuditEntries,
  listHeads,
} from '../../store/audit/audit.ts';
import type { Reader } from '../../store/engine/index.ts';

export interface Batch {
  /** At least one, in ASCII. */
  lines: readonly string[];
  /** The position once all of them are written. */
  end: AuditPosition;
}

/** More are never in one batch. */
const mostLines = 250;
/** A batch ends with the line that exceeds this; one line is some kilobytes. */
const mostBytes = 128 * 1024;

/** What follows a position; undefined when there is nothing. */
export async function nextBatch(db: Reader, position: AuditPosition): Promise<Batch | undefined> {
  const entries = await listAuditEntries(db, {}, { after: position.entry, limit: mostLines });
  const last = entries.at(-1)?.seq ?? position.entry;
  // A head follows the entries that it covers.
  const heads = await listHeads(db, { after: position.head, limit: mostLines });
  const covered = heads.filter(({ seq }) => seq <= last);
  const lines: string[] = [];
  const end = { ...position };
  let bytes = 0;
  const add = (kind: 'entry' | 'head', fields: AuditListing | SignedHead) => {
    if (lines.length === mostLines || bytes > mostBytes) return;
    const line = lineOf(kind, fields);
    lines.push(line);
    bytes += line.length;
    end[kind] = fields.seq;
  };
  for (const entry of entries) add('entry', entry);
  for (const head of covered) add('head', head);
  return lines.length === 0 ? undefined : { lines, end };
}

/** JSON whose strings hold nothing that a terminal or a collector could take for something else. */
export function lineOf(kind: 'entry' | 'head', fields: AuditListing | SignedHead): string {
  const known = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  const json = JSON.stringify({ kind, ...known });
  return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
