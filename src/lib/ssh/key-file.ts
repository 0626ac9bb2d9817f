/**
 * The service's own SSH keys, each in a file that is made on first use. Ours and not ssh2's generator, which drops a
 * leading zero byte of the public key: one key in two hundred is then refused by everyone, itself included.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { sshFingerprint } from '../../domain/access/ssh-key.ts';
import { DomainError } from '../../domain/error.ts';
import { writeWhole } from '../whole-file.ts';
import { sshString } from './wire.ts';

export interface SshKeyFile {
  /** OpenSSH format, unencrypted. Secret: never logged, never leaves the process but for its file. */
  privateKey: string;
  /** `ssh-ed25519 AAAA…` */
  publicKey: string;
  /** `SHA256:…` */
  fingerprint: string;
}

/**
 * The key in `file` (mode 0600), which is made, with its public part in `file.pub`, if it is missing. Throws `invalid_state` with a
 * sentence that names the file where it holds no key that can be used.
 */
export function loadSshKey(file: string): SshKeyFile {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const made = generateSshKey();
    // The private file is written last and whole, so that where it exists, the public one does too, also after a crash.
    writePublicPart(file, made);
    writeWhole(file, made.privateKey);
  }
  const privateKey = readKeyFile(file);
  const key = parseSshKey(privateKey);
  if (key) return key;
  throw unusable(file, 'it holds no private key in OpenSSH’s format that is without a passphrase');
}

export function writePublicPart(file: string, { publicKey }: Pick<SshKeyFile, 'publicKey'>): void {
  writeWhole(`${file}.pub`, `${publicKey} andromeda\n`);
}

/** A key in OpenSSH's format without a passphrase; undefined for anything else. */
export function parseSshKey(privateKey: string): SshKeyFile | undefined {
  const blob = publicPartOf(privateKey);
  if (!blob) return undefined;
  const type = blob.subarray(4, 4 + blob.readUInt32BE(0)).toString('latin1');
  return {
    privateKey,
    publicKey: `${type} ${blob.toString('base64')}`,
    fingerprint: sshFingerprint(blob),
  };
}

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw unusable(file, (error as NodeJS.ErrnoException).code ?? 'it cannot be read');
  }
}

function unusable(file: string, reason: string): DomainError {
  return new DomainError(
    'invalid_state',
    `The key in ${file} cannot be used: ${reason}. Restore it from a backup, or move it away to have a new one, which nobody knows yet.`,
  );
}

/**
 * The public part of a private key in OpenSSH's format (PROTOCOL.key), which is in the open; undefined for anything else, also
 * where the file was cut or the key has a passphrase.
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

/** A new Ed25519 key in OpenSSH's format (PROTOCOL.key in OpenSSH's source; RFC 8709 for the key itself). */
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
