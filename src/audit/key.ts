/** The installation's key for heads of the audit trail: Ed25519, in a file that is made when it is missing. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type ChainedEntry, type Redaction, redactionText } from '../domain/audit.ts';
import { type AuditCheckpoint, auditPublicKey, type SignedHead } from '../domain/audit-head.ts';
import { type AuditHead, checkpointText, headText } from '../domain/audit-text.ts';
import { DomainError } from '../domain/error.ts';
import { writeWhole } from '../lib/whole-file.ts';

export interface AuditKey {
  /** As `auditPublicKey` writes it. */
  publicKey: string;
  sign(head: AuditHead): SignedHead;
  signCheckpoint(head: AuditHead): AuditCheckpoint;
  /** Vouches for an entry as it is given, behind an entry with the hash `previous`. */
  signRedaction(previous: string, entry: ChainedEntry, at: string): Redaction;
}

/** The key in `file` (PKCS #8 as PEM, mode 0600). Throws `invalid_state` with a sentence where the file holds no key. */
export function loadAuditKey(file: string): AuditKey {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeWhole(file, makeAuditKey());
  }
  return parseAuditKey(readText(file), file);
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
    signRedaction: (previous, entry, at) => ({ at, ...signed(redactionText(previous, entry, at)) }),
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function readKey(text: string, name: string): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // What went wrong may quote the key.
  }
  throw new DomainError(
    'invalid_state',
    `${name} holds no Ed25519 key. Restore it from a backup, or move it away: a new one is made then.`,
  );
}
