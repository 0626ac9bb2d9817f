/** Ed25519 public keys as SSH carries them (RFC 8709): the blob, its fingerprint, a signature by it. */
import { createPublicKey, verify } from 'node:crypto';
import { sshFingerprint } from '../../domain/access/ssh-key.ts';
import { sshString, WireReader } from './wire.ts';

const ALGORITHM = 'ssh-ed25519';
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

export interface UserKey {
  blob: Buffer;
  /** "ssh-ed25519 AAAA…" */
  text: string;
  /** "SHA256:…" */
  fingerprint: string;
  raw: Buffer;
}

/** The key in `blob`, or undefined when it is not exactly one Ed25519 key. */
export function readUserKey(algorithm: string, blob: Buffer): UserKey | undefined {
  if (algorithm !== ALGORITHM) return undefined;
  try {
    const fields = new WireReader(blob);
    const type = fields.text();
    const raw = fields.bytes();
    if (type !== ALGORITHM || raw.length !== 32 || fields.rest().length > 0) return undefined;
    const own = Buffer.from(blob);
    const text = `${ALGORITHM} ${own.toString('base64')}`;
    return { blob: own, text, fingerprint: sshFingerprint(own), raw: Buffer.from(raw) };
  } catch {
    return undefined;
  }
}

/** Whether `signature` (with its algorithm name in front) is by `key` over `data`. */
export function isSignedBy(key: UserKey, signature: Buffer, data: Buffer): boolean {
  try {
    const fields = new WireReader(signature);
    if (fields.text() !== ALGORITHM) return false;
    const bytes = fields.bytes();
    if (bytes.length !== 64 || fields.rest().length > 0) return false;
    const spki = Buffer.concat([SPKI_PREFIX, key.raw]);
    return verify(null, data, createPublicKey({ key: spki, format: 'der', type: 'spki' }), bytes);
  } catch {
    return false;
  }
}

/** What a client signs to prove its key (RFC 4252, section 7): the session, then its request up to the signature. */
export function signedData(sessionId: Buffer, request: Buffer): Buffer {
  return Buffer.concat([sshString(sessionId), request]);
}

/** A signature as it goes over the wire. */
export function signatureBlob(bytes: Buffer): Buffer {
  return Buffer.concat([sshString(ALGORITHM), sshString(bytes)]);
}

/** The blob of a public key in OpenSSH format. */
export function blobOf(text: string): Buffer {
  return Buffer.from(text.trim().split(/\s+/)[1] ?? '', 'base64');
}
