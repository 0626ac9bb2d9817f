/** The installation's key, an Ed25519 one, for heads of the audit trail and for what goes with it: redactions, backups. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto';
import { invalidState } from '../error.ts';
import { type ChainedEntry, type Redaction, redactionText } from './audit.ts';
import {
  type AuditCheckpoint,
  type AuditHead,
  auditPublicKey,
  checkpointText,
  headText,
  type SignedHead,
} from './head.ts';

interface Signature {
  /** Which key signed, as `auditPublicKey` writes keys. */
  key: string;
  /** Ed25519 (RFC 8032), base64. */
  signature: string;
}

export interface AuditKey {
  /** As `auditPublicKey` writes it. */
  publicKey: string;
  sign(head: AuditHead): SignedHead;
  signCheckpoint(head: AuditHead): AuditCheckpoint;
  /**
   * The keyed hash that is kept of an erased person's identity; without the key it cannot be traced back. (Ed25519 signatures are
   * deterministic, RFC 8032, so the hash of one is a keyed hash of what was signed.)
   */
  markIdentity(issuer: string, subject: string): string;
  /**
   * Vouches for an entry as it is given, behind an entry with the hash `previous`. `accepted`: as a break that was accepted, which the
   * entry stays when its texts are replaced later.
   */
  signRedaction(previous: string, entry: ChainedEntry, at: string, accepted?: true): Redaction;
  /** Vouches for the manifest of a backup. */
  signBackup(manifest: string): Signature;
}

/** What the signature of a backup is made over; no head of the trail reads like it. */
export function backupText(manifest: string): string {
  return `andromeda backup\n${manifest}`;
}

/** A new key (PKCS #8 as PEM). */
export function makeAuditKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Throws `invalid_state` with a sentence that begins with `name`. It quotes nothing of the text. */
export function parseAuditKey(text: string, name: string): AuditKey {
  const key = readKey(text, name);
  const publicKey = auditPublicKey(createPublicKey(key));
  const signed = (text: string) => ({
    key: publicKey,
    signature: sign(null, Buffer.from(text), key).toString('base64'),
  });
  return {
    publicKey,
    sign: ({ seq, hash, at }) => ({ seq, hash, at, ...signed(headText({ seq, hash, at })) }),
    signCheckpoint: ({ seq, hash, at }) => ({ seq, hash, at, ...signed(checkpointText({ seq, hash, at })) }),
    markIdentity(issuer, subject) {
      const { signature } = signed(`andromeda erased identity\n${JSON.stringify([issuer, subject])}\n`);
      return createHash('sha256').update(signature).digest('base64url');
    },
    signRedaction(previous, entry, at, accepted = entry.redaction?.accepted) {
      const what = { at, ...(accepted && { accepted }) };
      return { ...what, ...signed(redactionText(previous, entry, what)) };
    },
    signBackup: (manifest) => signed(backupText(manifest)),
  };
}

function readKey(text: string, name: string): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // What went wrong may quote the key.
  }
  throw invalidState(
    `${name} holds no Ed25519 key. Restore it from a backup, or move it away to have a new one.`,
  );
}
