/**
 * Ed25519 public keys in SSH's format (RFC 8709), also those in security keys (OpenSSH, PROTOCOL.u2f): the blob, its
 * fingerprint, and verification of signatures.
 */

import { createHash, createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  isForSsh,
  type KeyBlob,
  plainKeyType,
  readKeyBlob,
  type SshKeyType,
  securityKeyType,
  sshFingerprint,
} from '../../domain/access/ssh-key.ts';
import { DomainError } from '../../domain/error.ts';
import { fileReason } from '../error-message.ts';
import { writeWhole } from '../whole-file.ts';
import { sshString, WireReader } from './wire.ts';

/** Flag of a security key's signature: the key was touched. */
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

/** Parses a blob; undefined unless it is exactly one Ed25519 key, plain or in a security key, for SSH. */
export function readUserKey(algorithm: string, blob: Buffer): UserKey | undefined {
  if (algorithm !== plainKeyType && algorithm !== securityKeyType) return undefined;
  const own = Buffer.from(blob);
  const parts = readKeyBlob(algorithm, own);
  if (!parts || !isForSsh(parts)) return undefined;
  const text = `${algorithm} ${own.toString('base64')}`;
  return { type: algorithm, blob: own, text, fingerprint: sshFingerprint(own), ...parts };
}

/** The result of verifying a signature. `untouched`: a security key signed without being touched. */
export type Proof = 'right' | 'wrong' | 'untouched';

/** Verifies `signature` (with its algorithm name in front) by `key` over `data`. */
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
 * The data that a security key signs (PROTOCOL.u2f, "SSH U2F signatures"). Counters are not kept: the session ID is in `data`, so
 * no signature can be replayed. A counter would only detect cloned hardware, and many keys do not keep one per credential.
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

/** The data that a client signs to prove its key (RFC 4252, section 7): the session ID, then its request up to the signature. */
export function signedData(sessionId: Buffer, request: Buffer): Buffer {
  return Buffer.concat([sshString(sessionId), request]);
}

/** A plain key's signature in its wire format. */
export function signatureBlob(bytes: Buffer): Buffer {
  return Buffer.concat([sshString(plainKeyType), sshString(bytes)]);
}

/** The blob of a public key in OpenSSH format. */
export function blobOf(text: string): Buffer {
  return Buffer.from(text.trim().split(/\s+/)[1] ?? '', 'base64');
}

export interface SshKeyFile {
  /** OpenSSH format, unencrypted. Secret: never logged, never leaves the process but for its file. */
  privateKey: string;
  /** `ssh-ed25519 AAAA…` */
  publicKey: string;
  /** `SHA256:…` */
  fingerprint: string;
}

/**
 * Loads the key in `file` (mode 0600); generates it, with its public part in `file.pub`, if it is missing. Throws
 * `invalid_state` with a sentence that names the file where it holds no usable key.
 */
export function loadSshKey(file: string): SshKeyFile {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const made = generateSshKey();
    // The private file is written last and atomically, so that the public one exists whenever it does, also after a crash.
    writePublicPart(file, made);
    writeWhole(file, made.privateKey);
  }
  const privateKey = readKeyFile(file);
  const key = parseSshKey(privateKey);
  if (key) return key;
  throw unusable(file, 'it holds no Ed25519 private key in OpenSSH’s format that is without a passphrase');
}

export function writePublicPart(file: string, { publicKey }: Pick<SshKeyFile, 'publicKey'>): void {
  writeWhole(`${file}.pub`, `${publicKey} andromeda\n`);
}

/** Parses an Ed25519 key in OpenSSH's format without a passphrase; undefined for anything else. */
export function parseSshKey(privateKey: string): SshKeyFile | undefined {
  const blob = publicPartOf(privateKey);
  const key = blob && readUserKey(plainKeyType, blob);
  return key && { privateKey, publicKey: key.text, fingerprint: key.fingerprint };
}

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw unusable(file, `it cannot be read: ${fileReason(error)}`);
  }
}

function unusable(file: string, reason: string): DomainError {
  return new DomainError(
    'invalid_state',
    `The key in ${file} cannot be used: ${reason}. Restore it from a backup, or move it away to have a new one, which nobody knows yet.`,
  );
}

/**
 * The public part of a private key in OpenSSH's format (PROTOCOL.key), which is not encrypted; undefined for anything
 * else, also for a truncated file or a key with a passphrase.
 */
function publicPartOf(privateKey: string): Buffer | undefined {
  const [, encoded = ''] =
    /^-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9+/=\s]+)-----END OPENSSH PRIVATE KEY-----\s*$/.exec(
      privateKey,
    ) ?? [];
  const whole = Buffer.from(encoded, 'base64');
  const magic = 'openssh-key-v1\0';
  if (whole.toString('latin1', 0, magic.length) !== magic) return undefined;
  try {
    let at = magic.length;
    const next = () => {
      const length = whole.readUInt32BE(at);
      const part = whole.subarray(at + 4, at + 4 + length);
      if (part.length < length) throw new RangeError('cut');
      at += 4 + length;
      return part;
    };
    const [cipher, kdf] = [next().toString(), next().toString()];
    next();
    const keys = whole.readUInt32BE(at);
    at += 4;
    const blob = next();
    const secret = next();
    const isWhole = secret.readUInt32BE(0) === secret.readUInt32BE(4);
    return cipher === 'none' && kdf === 'none' && keys === 1 && isWhole ? blob : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * A new Ed25519 key in OpenSSH's format (PROTOCOL.key in OpenSSH's source; RFC 8709 for the key). ssh2's generator
 * drops a leading zero byte of the public key: one key in two hundred is then refused by every program, ssh2
 * included.
 */
export function generateSshKey(): { privateKey: string; publicKey: string } {
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const type = sshString('ssh-ed25519');
  const point = Buffer.from(x, 'base64url');
  const blob = Buffer.concat([type, sshString(point)]);
  const check = randomBytes(4);
  const secret = sshString(Buffer.concat([Buffer.from(d, 'base64url'), point]));
  const body = Buffer.concat([check, check, blob, secret, sshString('andromeda')]);
  const padding = Buffer.from(Array.from({ length: (8 - (body.length % 8)) % 8 }, (_, index) => index + 1));
  const none = sshString('none');
  const whole = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    none,
    none,
    sshString(Buffer.alloc(0)),
    Buffer.from([0, 0, 0, 1]),
    sshString(blob),
    sshString(Buffer.concat([body, padding])),
  ]);
  const lines = whole.toString('base64').match(/.{1,70}/g) ?? [];
  const privateKey = [
    '-----BEGIN OPENSSH PRIVATE KEY-----',
    ...lines,
    '-----END OPENSSH PRIVATE KEY-----',
    '',
  ];
  return { privateKey: privateKey.join('\n'), publicKey: `ssh-ed25519 ${blob.toString('base64')}` };
}
