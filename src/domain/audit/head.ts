/**
 * Signed heads of the audit trail. A head is an entry's number and hash, and so stands for the whole trail up to it.
 * With write access to the database one can recompute the whole chain, but not sign it without the installation's key.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';

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
