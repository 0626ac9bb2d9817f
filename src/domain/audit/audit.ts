/**
 * The hash chain of the audit trail: each entry's hash covers the entry and the hash before it, so changing, dropping
 * or inserting an entry changes every later hash. Anyone with the entries can verify the chain. The installation's
 * Ed25519 key signs its heads, redactions and backups.
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

/** The texts of an entry that a redaction can replace, as when a person is erased. */
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
  /** Absent: the request did not come over a network. */
  sourceAddress?: string;
  /** `done`, or `refused: ` and the error code. */
  result: string;
  details?: string | undefined;
}

/** An entry about a session of the gateway. Its time is that of the event, which is earlier than the write. */
export type SessionEntry = AuditEntry & {
  at: string;
  clusterId: string;
  /** The session, in an entry about its start or end. */
  session?: SshSession;
  /** At the session's end, if known. */
  uses?: SessionUses;
};

/** The text that is hashed for an entry. Null fields are included; the API leaves them out. */
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
  /** The key that signed, in the format of `auditPublicKey`. */
  key: string;
  /** Ed25519 (RFC 8032), base64. */
  signature: string;
}

/**
 * A signed replacement of an entry's texts, as when a person is erased. The entry keeps its hash and so its position
 * in the chain, and the installation's key signs the new texts: without that key, no text can be replaced again.
 */
export interface Redaction extends Signature {
  /** RFC 3339. */
  at: string;
  /** Set if the chain broke at this entry and an operator on the host accepted the break. */
  accepted?: true;
}

export type ChainedEntry = AuditRecord & { hash: string; redaction?: Redaction | null | undefined };

/**
 * The text that is signed for a redaction: the hash before the entry, its own hash, and a hash of the entry as it is now
 * (behind ''). The text of an accepted break (`accepted`) differs, so that its signature is not valid for a redaction.
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
 * The first entry that does not follow from the one before it; undefined for an intact chain. `previous` is the last
 * good one. `isTrusted` says whether redactions signed with a key count; the default trusts every key.
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

/** Checks that the entry's number follows; at an accepted break, entries may be missing. */
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
  /** The entry's hash, as `auditHash` makes it. */
  hash: string;
  /** When it was signed, RFC 3339. */
  at: string;
}

export function headText({ seq, hash, at }: AuditHead, kind: 'head' | 'checkpoint' = 'head'): string {
  return `andromeda audit ${kind}\n${seq}\n${hash}\n${at}\n`;
}

/**
 * A head is an entry's number and hash, and so commits to the whole trail up to it. Write access to the database is
 * enough to recompute the chain, but not to sign it without the installation's key.
 */
export interface SignedHead extends AuditHead, Signature {}

/**
 * The new start of a truncated trail: the installation deleted the entries before it, and its key signs this head as a
 * checkpoint. The signature of an ordinary head does not count, so a truncated trail cannot pass one off as its beginning.
 */
export type AuditCheckpoint = SignedHead;

const prefix = 'ed25519:';

/** A public key in one line: `ed25519:` and its SubjectPublicKeyInfo (RFC 8410) in base64. */
export function auditPublicKey(key: KeyObject): string {
  return `${prefix}${key.export({ type: 'spki', format: 'der' }).toString('base64')}`;
}

export function isAuditPublicKey(text: string): boolean {
  return parseKey(text) !== undefined;
}

/** Verifies the signature with the key that the head names. The caller decides whether that key is trusted. */
export function isSignedHead(head: SignedHead): boolean {
  return isSigned(headText(head), head);
}

export function isSignedCheckpoint(checkpoint: AuditCheckpoint): boolean {
  return isSigned(headText(checkpoint, 'checkpoint'), checkpoint);
}

/** Verifies a signature by a key in the format of `auditPublicKey`. */
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
  /** In the format of `auditPublicKey`. */
  publicKey: string;
  /** Former public keys, whose signatures still count; their private keys are deleted. */
  formerKeys: readonly string[];
  sign(head: AuditHead): SignedHead;
  signCheckpoint(head: AuditHead): AuditCheckpoint;
  /** A keyed hash of an erased person's identity, which stays the same under later keys and cannot be reversed without a key. */
  markIdentity(issuer: string, subject: string): string;
  /**
   * Signs the current texts of an entry that follows an entry with the hash `previous`. `accepted` marks an accepted
   * break; the entry stays one when its texts are replaced later.
   */
  signRedaction(previous: string, entry: ChainedEntry, at: string, accepted?: true): Redaction;
  signBackup(manifest: string): Signature;
}

/** The text that is signed for a backup; it differs from the text of every signed head. */
export function backupText(manifest: string): string {
  return `andromeda backup\n${manifest}`;
}

/**
 * A new key (PKCS #8 as PEM). A successor's text begins with the secret for hashes of identities and the public keys
 * whose signatures still count; a `stolen` key is not among those.
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

/** Throws `invalid_state` with a sentence that begins with `name`. It quotes no part of the secret text. */
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
    // The error may quote the key, so it is dropped.
  }
  throw invalidState(
    `The key in ${name} cannot be used: it holds no Ed25519 key. ${spoiltKeyAdvice('audit')}`,
  );
}

/** The public keys whose signatures count; the signing key is the first. */
export function trustedKeys(held: HeldKeys<AuditKey>): string[] {
  const keys = allKeys(held);
  return [
    ...new Set([...keys.map(({ publicKey }) => publicKey), ...keys.flatMap(({ formerKeys }) => formerKeys)]),
  ];
}
