/** The installation's key for heads of the audit trail: Ed25519, in a file that is made when it is missing. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type AuditHead, auditPublicKey, headText, type SignedHead } from '../domain/audit-head.ts';
import { DomainError } from '../domain/error.ts';
import { writeWhole } from '../lib/whole-file.ts';

export interface AuditKey {
  /** As `auditPublicKey` writes it. */
  publicKey: string;
  sign(head: AuditHead): SignedHead;
}

/** The key in `file` (PKCS #8 as PEM, mode 0600). Throws `invalid_state` with a sentence where the file holds no key. */
export function loadAuditKey(file: string): AuditKey {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const { privateKey } = generateKeyPairSync('ed25519');
    writeWhole(file, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  }
  const key = readKey(file);
  const publicKey = auditPublicKey(createPublicKey(key));
  return {
    publicKey,
    sign({ seq, hash, at }) {
      const head = { seq, hash, at };
      const signature = sign(null, Buffer.from(headText(head)), key).toString('base64');
      return { ...head, key: publicKey, signature };
    },
  };
}

function readKey(file: string): KeyObject {
  try {
    const key = createPrivateKey(readFileSync(file));
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // What went wrong may quote the key.
  }
  throw new DomainError(
    'invalid_state',
    `${file} holds no Ed25519 key. Restore it from a backup, or move it away: a new one is made then.`,
  );
}
