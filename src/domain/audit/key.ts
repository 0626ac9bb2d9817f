/** The installation's key, an Ed25519 one, for heads of the audit trail and for what goes with it: redactions, backups. */
import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto';
import { invalidState } from '../error.ts';
import { allKeys, type HeldKeys, type KeySet, keysAt, mapKeys } from '../key-rotation.ts';
import {
  type AuditCheckpoint,
  type AuditHead,
  auditPublicKey,
  type ChainedEntry,
  checkpointText,
  headText,
  type Redaction,
  redactionText,
  type SignedHead,
} from './audit.ts';

interface Signature {
  /** Which key signed, as `auditPublicKey` writes keys. */
  key: string;
  /** Ed25519 (RFC 8032), base64. */
  signature: string;
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
  /** Vouches for the manifest of a backup. */
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
export function makeAuditKey(former?: { text: string; stolen: boolean }): string {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  if (!former) return pem;
  const { publicKey, formerKeys, marks } = readAuditKey(former.text, 'The key before');
  const trusted = former.stolen ? formerKeys : [publicKey, ...formerKeys];
  return `${[`Marks: ${marks}`, ...trusted.map((key) => `Former: ${key}`)].join('\n')}\n${pem}`;
}

function readAuditKey(text: string, name: string) {
  const key = readKey(text, name);
  // Signatures are deterministic (RFC 8032), and tell nothing of the key.
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
    signCheckpoint: ({ seq, hash, at }) => ({ seq, hash, at, ...signed(checkpointText({ seq, hash, at })) }),
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
    `${name} holds no Ed25519 key. Restore it from a backup, or move it away to have a new one.`,
  );
}

/** The public keys whose signatures count, that of the key that signs first. */
export function trustedKeys(held: HeldKeys<AuditKey>): string[] {
  const keys = allKeys(held);
  return [
    ...new Set([...keys.map(({ publicKey }) => publicKey), ...keys.flatMap(({ formerKeys }) => formerKeys)]),
  ];
}
