/**
 * Ed25519 public keys as SSH carries them (RFC 8709), those in security keys too (OpenSSH, PROTOCOL.u2f): the blob, its
 * fingerprint, a signature by it.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';
import {
  isForSsh,
  type KeyBlob,
  plainKeyType,
  readKeyBlob,
  type SshKeyType,
  securityKeyType,
  sshFingerprint,
} from '../../domain/access/ssh-key.ts';
import { sshString, WireReader } from './wire.ts';

/** In the flags of a security key: it was touched. */
const USER_PRESENT = 0x01;
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

export interface UserKey extends KeyBlob {
  type: SshKeyType;
  blob: Buffer;
  /** "ssh-ed25519 AAAA…" */
  text: string;
  /** "SHA256:…" */
  fingerprint: string;
}

/** The key in `blob`, or undefined when it is not exactly one Ed25519 key, plain or in a security key, for SSH. */
export function readUserKey(algorithm: string, blob: Buffer): UserKey | undefined {
  if (algorithm !== plainKeyType && algorithm !== securityKeyType) return undefined;
  const own = Buffer.from(blob);
  const parts = readKeyBlob(algorithm, own);
  if (!parts || !isForSsh(parts)) return undefined;
  const text = `${algorithm} ${own.toString('base64')}`;
  return { type: algorithm, blob: own, text, fingerprint: sshFingerprint(own), ...parts };
}

/** What a signature shows. `untouched`: a security key signed without being touched. */
export type Proof = 'right' | 'wrong' | 'untouched';

/** What `signature` (with its algorithm name in front), as if by `key` over `data`, shows. */
export function checkSignature(key: UserKey, signature: Buffer, data: Buffer): Proof {
  try {
    const fields = new WireReader(signature);
    if (fields.text() !== key.type) return 'wrong';
    const bytes = fields.bytes();
    const { application } = key;
    const touch = application && { flags: fields.byte(), counter: fields.uint32() };
    if (bytes.length !== 64 || fields.left > 0) return 'wrong';
    const signed = touch ? fidoData(application, touch, data) : data;
    const spki = Buffer.concat([SPKI_PREFIX, key.point]);
    const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' });
    if (!verify(null, signed, publicKey, bytes)) return 'wrong';
    return touch && (touch.flags & USER_PRESENT) === 0 ? 'untouched' : 'right';
  } catch {
    return 'wrong';
  }
}

/**
 * What a security key signs (PROTOCOL.u2f, "SSH U2F signatures"). Counters are not kept: the session ID is in `data`, so no
 * signature can be replayed. A counter would only detect cloned hardware, and many keys do not keep one per credential.
 */
function fidoData(
  application: Buffer,
  { flags, counter }: { flags: number; counter: number },
  data: Buffer,
): Buffer {
  const said = Buffer.alloc(5);
  said.writeUInt8(flags);
  said.writeUInt32BE(counter, 1);
  return Buffer.concat([sha256(application), said, sha256(data)]);
}

function sha256(data: Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}

/** What a client signs to prove its key (RFC 4252, section 7): the session, then its request up to the signature. */
export function signedData(sessionId: Buffer, request: Buffer): Buffer {
  return Buffer.concat([sshString(sessionId), request]);
}

/** A signature by a plain key as it goes over the wire. */
export function signatureBlob(bytes: Buffer): Buffer {
  return Buffer.concat([sshString(plainKeyType), sshString(bytes)]);
}

/** The blob of a public key in OpenSSH format. */
export function blobOf(text: string): Buffer {
  return Buffer.from(text.trim().split(/\s+/)[1] ?? '', 'base64');
}
