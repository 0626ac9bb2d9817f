/**
 * The audit trail's chain: each entry's hash covers the entry and the hash before it, so that nothing in the past can
 * be changed, dropped or put in without every later hash changing too. Anyone with the entries can check it. The installation's key,
 * an Ed25519 one, signs its heads and what goes with it: redactions, backups.
 */
import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import type { SessionUses, SshSession } from '../access/ssh-session.ts';
import { invalidState } from '../error.ts';
import { allKeys, type HeldKeys, type KeySet, keysAt, mapKeys, spoiltKeyAdvice } from '../key-rotation.ts';

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

/** The texts of an entry that can be replaced, as when a person is erased. */
export type EntryTexts = Pick<AuditRecord, 'target' | 'reason' | 'source_address' | 'details'>;

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

interface Signature {
  /** Which key signed, as `auditPublicKey` writes keys. */
  key: string;
  /** Ed25519 (RFC 8032), base64. */
  signature: string;
}

/**
 * That texts of an entry were replaced, as when a person is erased. The entry keeps its hash and so its place in the chain,
 * and the installation's key signs what the entry says now: without that key, no text can be replaced, or replaced again.
 */
export interface Redaction extends Signature {
  /** RFC 3339. */
  at: string;
  /** Whether it is there because the chain broke at this entry, and an operator on the host accepted that. */
  accepted?: true;
}

export type ChainedEntry = AuditRecord & { hash: string; redaction?: Redaction | null | undefined };

/**
 * What is signed of a redaction: the entry as it is now (its hash behind ''), between the hash before it and its own. `accepted`: of
 * a break that was accepted, which is no redaction by its signature either.
 */
function redactionText(
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

interface AuditHead {
  seq: number;
  /** Of that entry, as `auditHash` makes it. */
  hash: string;
  /** When it was signed, RFC 3339. */
  at: string;
}

export function headText({ seq, hash, at }: AuditHead, kind: 'head' | 'checkpoint' = 'head'): string {
  return `andromeda audit ${kind}\n${seq}\n${hash}\n${at}\n`;
}

/**
 * A head is an entry's number and hash, and so stands for the whole trail up to it. With write access to the database one can
 * recompute the whole chain, but not sign it without the installation's key.
 */
export interface SignedHead extends AuditHead, Signature {}

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

export function isSignedCheckpoint(checkpoint: AuditCheckpoint): boolean {
  return isSigned(headText(checkpoint, 'checkpoint'), checkpoint);
}

/** Whether a key, as `auditPublicKey` writes it, has signed a text. */
export function isSigned(text: string, by: Signature): boolean {
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

export interface AuditKey {
  /** As `auditPublicKey` writes it. */
  publicKey: string;
  /** Those of before, whose signatures still count; the keys themselves are gone. */
  formerKeys: readonly string[];
  sign(head: AuditHead): SignedHead;
  signCheckpoint(head: AuditHead): AuditCheckpoint;
  /** The keyed hash that is kept of an erased person's identity, the same by every later key; without one it cannot be traced back. */
  markIdentity(issuer: string, subject: string): string;
  /**
   * Vouches for an entry as it is given, behind an entry with the hash `previous`. `accepted`: as a break that was accepted, which the
   * entry stays when its texts are replaced later.
   */
  signRedaction(previous: string, entry: ChainedEntry, at: string, accepted?: true): Redaction;
  signBackup(manifest: string): Signature;
}

/** What the signature of a backup is made over; no head of the trail reads like it. */
export function backupText(manifest: string): string {
  return `andromeda backup\n${manifest}`;
}

/**
 * A new key (PKCS #8 as PEM). In front of it, as far as it takes the place of another, are what hashes of identities are made with,
 * and the public keys whose signatures still count: not that of a `stolen` one.
 */
export function makeAuditKey(former?: { text: string; title: string; stolen: boolean }): string {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  if (!former) return pem;
  const { publicKey, formerKeys, marks } = readAuditKey(former.text, former.title);
  const trusted = former.stolen ? formerKeys : [publicKey, ...formerKeys];
  return `${[`Marks: ${marks}`, ...trusted.map((key) => `Former: ${key}`)].join('\n')}\n${pem}`;
}

function readAuditKey(text: string, name: string) {
  const key = readKey(text, name);
  // Signatures are deterministic (RFC 8032), and reveal nothing of the key.
  const derived = () =>
    createHash('sha256').update(sign(null, Buffer.from('andromeda erased identities\n'), key));
  return {
    key,
    publicKey: auditPublicKey(createPublicKey(key)),
    formerKeys: [...text.matchAll(/^Former: (\S+)$/gm)].map(([, one = '']) => one),
    marks: /^Marks: (\S+)$/m.exec(text)?.[1] ?? derived().digest('base64'),
  };
}

/** Throws `invalid_state` with a sentence that begins with `name`. It quotes nothing of the text. */
export function parseAuditKey(text: string, name: string): AuditKey {
  const { key, publicKey, formerKeys, marks } = readAuditKey(text, name);
  const signed = (text: string) => ({
    key: publicKey,
    signature: sign(null, Buffer.from(text), key).toString('base64'),
  });
  return {
    publicKey,
    formerKeys,
    sign: ({ seq, hash, at }) => ({ seq, hash, at, ...signed(headText({ seq, hash, at })) }),
    signCheckpoint: ({ seq, hash, at }) => ({
      seq,
      hash,
      at,
      ...signed(headText({ seq, hash, at }, 'checkpoint')),
    }),
    markIdentity: (issuer, subject) =>
      createHmac('sha256', marks)
        .update(JSON.stringify([issuer, subject]))
        .digest('base64url'),
    signRedaction(previous, entry, at, accepted = entry.redaction?.accepted) {
      const what = { at, ...(accepted && { accepted }) };
      return { ...what, ...signed(redactionText(previous, entry, what)) };
    },
    signBackup: (manifest) => signed(backupText(manifest)),
  };
}

/** Throws as `parseAuditKey` does. */
export function auditKeysAt(set: KeySet<string>, name: string, now: number): HeldKeys<AuditKey> {
  const parsed = mapKeys(set, (text) => parseAuditKey(text, name));
  return keysAt(parsed, now);
}

function readKey(text: string, name: string): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // What went wrong may quote the key.
  }
  throw invalidState(
    `The key in ${name} cannot be used: it holds no Ed25519 key. ${spoiltKeyAdvice('audit')}`,
  );
}

/** The public keys whose signatures count, that of the key that signs first. */
export function trustedKeys(held: HeldKeys<AuditKey>): string[] {
  const keys = allKeys(held);
  return [
    ...new Set([...keys.map(({ publicKey }) => publicKey), ...keys.flatMap(({ formerKeys }) => formerKeys)]),
  ];
}
