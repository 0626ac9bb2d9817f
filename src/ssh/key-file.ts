/**
 * The service's own SSH keys, each in a file that is made on first use. Ours and not ssh2's generator, which drops a
 * leading zero byte of the public key: one key in two hundred is then refused by everyone, itself included.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { sshFingerprint } from '../domain/ssh-key.ts';
import { sshString } from './wire.ts';

export interface SshKeyFile {
  /** OpenSSH format, unencrypted. Secret: never logged, never leaves the process but for its file. */
  privateKey: string;
  /** `ssh-ed25519 AAAA…` */
  publicKey: string;
  /** `SHA256:…` */
  fingerprint: string;
}

/** The Ed25519 key in `file` (mode 0600), with its public part in `file.pub`; both are made if they are missing. */
export function loadSshKey(file: string): SshKeyFile {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const made = generateSshKey();
    // The private file comes last and whole: where it is, the public one is too, whenever a crash comes.
    writeWhole(`${file}.pub`, `${made.publicKey} andromeda\n`);
    writeWhole(file, made.privateKey);
  }
  const [type = '', encoded = ''] = readFileSync(`${file}.pub`, 'utf8').split(' ');
  return {
    privateKey: readFileSync(file, 'utf8'),
    publicKey: `${type} ${encoded}`,
    fingerprint: sshFingerprint(Buffer.from(encoded, 'base64')),
  };
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

function writeWhole(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}
