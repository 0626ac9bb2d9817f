/** What a destination is sent: entries and signed heads, each as one line of JSON, in batches that are bounded in number and bytes. */
import type { SignedHead } from '../../domain/audit/head.ts';
import {
  type AuditListing,
  type AuditPosition,
  listAuditEntries,
  listHeads,
} from '../../store/audit/audit.ts';
import type { Reader } from '../../store/engine/index.ts';

/** What is sent, as one line of JSON in ASCII. */
export type AuditMessage = { kind: 'entry' | 'head'; seq: number; hash: string; at: string; json: string };

export interface Batch {
  /** At least one. */
  messages: readonly AuditMessage[];
  /** The position once all of them are sent. */
  end: AuditPosition;
  /** Whether more may wait behind it. */
  isFull: boolean;
}

/** More are never in one batch. */
export const mostMessages = 250;
/** A batch ends with the message that exceeds this; one message is some kilobytes. */
const mostBytes = 128 * 1024;

/** What follows a position, at most `most` messages; undefined when there is nothing. */
export async function nextBatch(
  db: Reader,
  position: AuditPosition,
  most: number,
): Promise<Batch | undefined> {
  const entries = await listAuditEntries(db, {}, { after: position.entry, limit: most });
  const last = entries.at(-1)?.seq ?? position.entry;
  // A head follows the entries that it covers.
  const heads = await listHeads(db, { after: position.head, limit: most });
  const covered = heads.filter(({ seq }) => seq <= last);
  const messages: AuditMessage[] = [];
  let bytes = 0;
  for (const message of [...entries.map(entryMessage), ...covered.map(headMessage)]) {
    if (messages.length === most || bytes > mostBytes) break;
    messages.push(message);
    bytes += message.json.length;
  }
  if (messages.length === 0) return undefined;
  const entry = messages.findLast(({ kind }) => kind === 'entry');
  const head = messages.findLast(({ kind }) => kind === 'head');
  return {
    messages,
    isFull: messages.length === most || bytes > mostBytes,
    end: {
      entry: entry?.seq ?? position.entry,
      hash: entry?.hash ?? position.hash,
      head: head?.seq ?? position.head,
    },
  };
}

export function entryMessage(entry: AuditListing): AuditMessage {
  return message('entry', entry);
}

function headMessage(head: SignedHead): AuditMessage {
  return message('head', head);
}

function message(
  kind: AuditMessage['kind'],
  fields: { seq: number; hash: string; at: string },
): AuditMessage {
  const { seq, hash, at } = fields;
  const known = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  return { kind, seq, hash, at, json: toAscii(JSON.stringify({ kind, ...known })) };
}

/** JSON whose strings hold nothing that a terminal or a collector could take for something else. */
function toAscii(json: string): string {
  return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
