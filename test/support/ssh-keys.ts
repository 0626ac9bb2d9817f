/** SSH public keys of every kind, as OpenSSH writes them. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new Ed25519 key: `ssh-ed25519 AAAA…`. */
export function newPublicKey(): string {
  const { publicKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  return `ssh-ed25519 ${Buffer.concat([lengthPrefixed('ssh-ed25519'), lengthPrefixed(raw)]).toString('base64')}`;
}

export function lengthPrefixed(part: string | Uint8Array): Buffer {
  const bytes = Buffer.from(part);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** A key made by the real ssh-keygen. */
export function keygen(...options: string[]): { publicKey: string; privateKey: string } {
  return withFile((file) => {
    execFileSync('ssh-keygen', ['-q', '-N', '', '-C', 'ada@laptop', '-f', file, ...options]);
    return { publicKey: readFileSync(`${file}.pub`, 'utf8'), privateKey: readFileSync(file, 'utf8') };
  });
}

/** The fingerprint that the real ssh-keygen prints. */
export function keygenFingerprint(publicKey: string): string {
  return withFile((file) => {
    writeFileSync(file, publicKey);
    return execFileSync('ssh-keygen', ['-lf', file], { encoding: 'utf8' }).split(' ')[1] ?? '';
  });
}

/** A public key as the real ssh-keygen writes it for others (RFC 4716). */
export function rfc4716(publicKey: string): string {
  return withFile((file) => {
    writeFileSync(file, publicKey);
    return execFileSync('ssh-keygen', ['-e', '-f', file], { encoding: 'utf8' });
  });
}

function withFile<T>(use: (file: string) => T): T {
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-keys-'));
  try {
    return use(join(directory, 'key'));
  } finally {
    rmSync(directory, { recursive: true });
  }
}
