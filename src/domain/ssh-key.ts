/** SSH public keys as people register them: one Ed25519 key in OpenSSH format (RFC 8709; contract, "SSH key"). */
import { createHash } from 'node:crypto';
import { DomainError } from './error.ts';

export interface SshPublicKey {
  type: 'ssh-ed25519';
  /** `ssh-ed25519 AAAA…`, the comment dropped and the base64 written canonically. */
  material: string;
  /** `SHA256:` and unpadded base64, as `ssh-keygen -lf` prints it. */
  fingerprint: string;
}

/** A key that a person registered. It is theirs for good, also when it is revoked. */
export interface SshKey extends SshPublicKey {
  id: string;
  userId: string;
  state: 'active' | 'revoked';
  /** RFC 3339; null while it is active. */
  revokedAt: string | null;
  createdAt: string;
  createdByUserId: string;
  createdCommandId: string;
  /** The generation of the person's key set that it came with. */
  sourceRevision: number;
}

/** A version of a person's set of active keys. */
export interface SshKeySet {
  userId: string;
  generation: number;
  /** Of the active fingerprints, in order. */
  sourceHash: string;
  createdAt: string;
}

const keyType = 'ssh-ed25519';
const keyLength = 32;
const oneKey = 'Send one public key on one line.';

/** Reads one public key line. Throws `invalid_request` with a sentence that says what it is instead. */
export function parseSshPublicKey(text: string): SshPublicKey {
  const line = text.trim();
  if (line === '') throw invalid('The public key is empty.');
  if (/PRIVATE KEY/.test(line)) {
    throw invalid('That is a private key. Keep it secret, and send the file that ends in .pub.');
  }
  if (/[\r\n]/.test(line)) throw invalid(oneKey);
  const [type = '', encoded = '', ...comment] = line.split(/[ \t]+/);
  if (type !== keyType) {
    const named = /^[a-z0-9@.-]{1,64}$/.test(type) ? `, not ${type}` : '';
    throw invalid(`Only Ed25519 keys are accepted${named}. Make one with: ssh-keygen -t ed25519`);
  }
  // Two lines pasted into one: the second key would be dropped as a comment and never work.
  if (comment.some((word) => /^AAAA[A-Za-z0-9+/]{40,}={0,2}$/.test(word))) throw invalid(oneKey);
  const blob = decodeBase64(encoded);
  const key = blob && ed25519Of(blob);
  if (!key) throw invalid('The public key is not readable as an Ed25519 key; was it cut off in copying?');
  return {
    type: keyType,
    material: `${keyType} ${key.toString('base64')}`,
    fingerprint: sshFingerprint(key),
  };
}

/** The SHA-256 fingerprint of a key blob (RFC 4253 §6.6), as OpenSSH prints it. */
export function sshFingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

function ed25519Of(blob: Buffer): Buffer | undefined {
  const expected = 4 + keyType.length + 4 + keyLength;
  const head = Buffer.from([0, 0, 0, keyType.length, ...Buffer.from(keyType), 0, 0, 0, keyLength]);
  return blob.length === expected && blob.subarray(0, head.length).equals(head) ? blob : undefined;
}

function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node skips what is no base64, so what does not come out the same again was none.
  return bytes.toString('base64') === text ? bytes : undefined;
}

function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}
