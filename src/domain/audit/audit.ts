/**
 * The audit trail's chain: each entry's hash covers the entry and the hash before it, so that nothing in the past can
 * be changed, dropped or put in without every later hash changing too. Anyone with the entries can check it.
 */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { SessionUses, SshSession } from '../access/ssh-session.ts';

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
  subject_user_id: string | null;
  reason: string;
  source_address: string;
  /** `done`, or `refused: ` and the error code. */
  result: string;
  details: string;
}

/** What is handed in to be written down; its place in the chain is given then. */
export interface AuditEntry {
  /** RFC 3339; left out: the time of the transaction. */
  at?: string;
  actorUserId: string;
  commandId?: string | null | undefined;
  operation: string;
  target: string;
  organizationId?: string | null | undefined;
  clusterId?: string | null | undefined;
  subjectUserId?: string | null | undefined;
  reason: string;
  /** Left out: it came over no network. */
  sourceAddress?: string;
  /** `done`, or `refused: ` and the error code. */
  result: string;
  details?: string | undefined;
}

/** An entry about a session of the gateway: it happened before it is written down. */
export type SessionEntry = AuditEntry & {
  at: string;
  clusterId: string;
  /** What it tells of, where it is the opening or the end of one. */
  session?: SshSession;
  /** At its end, where that is known. */
  uses?: SessionUses;
};

/** What the hash of an entry is made over, behind the hash of the one before it. The API leaves out what is null. */
function auditText(previous: string, entry: AuditRecord): string {
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

/** The hash of an entry, from the one before it ('' for the first): SHA-256, as `sha256:` and hex. */
export function auditHash(previous: string, entry: AuditRecord): string {
  return `sha256:${createHash('sha256').update(auditText(previous, entry)).digest('hex')}`;
}

/**
 * That texts of an entry were replaced, as when a person is erased. The entry keeps its hash and so its place in the chain,
 * and the installation's key signs what the entry says now: without that key, no text can be replaced, or replaced again.
 */
export interface Redaction {
  /** RFC 3339. */
  at: string;
  /** Whether it is there because the chain broke at this entry, and an operator on the host accepted that. */
  accepted?: true;
  /** As `auditPublicKey` writes keys. */
  key: string;
  signature: string;
}

export type ChainedEntry = AuditRecord & { hash: string; redaction?: Redaction | null | undefined };

/**
 * What is signed of a redaction: the entry as it is now (its hash behind ''), between the hash before it and its own. `accepted`: of
 * a break that was accepted, which is no redaction by its signature either.
 */
export function redactionText(
  previous: string,
  entry: ChainedEntry,
  { at, accepted }: Pick<Redaction, 'at' | 'accepted'>,
): string {
  const kind = accepted ? 'accepted break' : 'redaction';
  return `andromeda audit ${kind}\n${entry.seq}\n${previous}\n${entry.hash}\n${auditHash('', entry)}\n${at}\n`;
}

/**
 * The first entry that does not follow from the one before it; undefined when all do. `previous` is the last good one.
 * `isTrusted`: whether redactions signed with a key count; left out: with any.
 */
export function findBreak<E extends ChainedEntry>(
  previous: { seq: number; hash: string },
  entries: readonly E[],
  isTrusted: (key: string) => boolean = () => true,
): E | undefined {
  let last = previous;
  for (const entry of entries) {
    if (!isNext(last.seq, entry) || !follows(last.hash, entry, isTrusted)) return entry;
    last = entry;
  }
  return undefined;
}

/** Whether no entry is missing before it; where a break was accepted, entries may be. */
function isNext(last: number, { seq, redaction }: ChainedEntry): boolean {
  return redaction?.accepted ? seq > last : seq === last + 1;
}

function follows(previous: string, entry: ChainedEntry, isTrusted: (key: string) => boolean): boolean {
  const { redaction } = entry;
  if (!redaction) return entry.hash === auditHash(previous, entry);
  return isTrusted(redaction.key) && isSigned(redactionText(previous, entry, redaction), redaction);
}

export interface AuditHead {
  seq: number;
  /** Of that entry, as `auditHash` makes it. */
  hash: string;
  /** When it was signed, RFC 3339. */
  at: string;
}

export function headText({ seq, hash, at }: AuditHead): string {
  return `andromeda audit head\n${seq}\n${hash}\n${at}\n`;
}

export function checkpointText({ seq, hash, at }: AuditHead): string {
  return `andromeda audit checkpoint\n${seq}\n${hash}\n${at}\n`;
}

/**
 * A head is an entry's number and hash, and so stands for the whole trail up to it. With write access to the database one can
 * recompute the whole chain, but not sign it without the installation's key.
 */
export interface SignedHead extends AuditHead {
  /** Which key signed it, as `auditPublicKey` writes keys. */
  key: string;
  /** Ed25519 (RFC 8032) over `headText`, base64. */
  signature: string;
}

/**
 * Where the trail begins: the installation deleted the entries before it, and its key signs this head as a checkpoint. The
 * signature of an ordinary head does not count, so that a truncated trail cannot pass one off as its beginning.
 */
export type AuditCheckpoint = SignedHead;

const prefix = 'ed25519:';

/** A public key in one line: `ed25519:` and its SubjectPublicKeyInfo (RFC 8410) in base64. */
export function auditPublicKey(key: KeyObject): string {
  return `${prefix}${key.export({ type: 'spki', format: 'der' }).toString('base64')}`;
}

/** Whether a text is a public key as `auditPublicKey` writes it. */
export function isAuditPublicKey(text: string): boolean {
  return parseKey(text) !== undefined;
}

/** Whether the key that the head names has signed it. Whether that key is to be trusted, the caller decides. */
export function isSignedHead(head: SignedHead): boolean {
  return isSigned(headText(head), head);
}

/** The same for a checkpoint. */
export function isSignedCheckpoint(checkpoint: AuditCheckpoint): boolean {
  return isSigned(checkpointText(checkpoint), checkpoint);
}

/** Whether a key, as `auditPublicKey` writes it, has signed a text. */
export function isSigned(text: string, by: { key: string; signature: string }): boolean {
  const key = parseKey(by.key);
  return key !== undefined && verify(null, Buffer.from(text), key, Buffer.from(by.signature, 'base64'));
}

function parseKey(text: string): KeyObject | undefined {
  if (!text.startsWith(prefix)) return undefined;
  try {
    const der = Buffer.from(text.slice(prefix.length), 'base64');
    const key = createPublicKey({ key: der, type: 'spki', format: 'der' });
    return auditPublicKey(key) === text && key.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}
