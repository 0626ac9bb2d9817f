/** The gateway's own two keys, made on first start and kept in the data directory. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import ssh2 from 'ssh2';
import { sshFingerprint } from '../domain/ssh-key.ts';

export interface GatewayKey {
  /** OpenSSH format. Secret: never logged, never leaves the process but for its file. */
  privateKey: string;
  /** `ssh-ed25519 AAAA…` */
  publicKey: string;
  /** `SHA256:…` */
  fingerprint: string;
}

/** The Ed25519 key in `file` (mode 0600), made there first when it is missing. */
export function loadGatewayKey(file: string): GatewayKey {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    // Written aside and renamed, so that a crash leaves either no key or a whole one.
    const made = ssh2.utils.generateKeyPairSync('ed25519', { comment: 'andromeda' });
    writeFileSync(`${file}.new`, made.private, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
  const privateKey = readFileSync(file, 'utf8');
  const parsed = ssh2.utils.parseKey(privateKey);
  if (parsed instanceof Error)
    throw new Error(`${file} is not readable as an SSH private key`, { cause: parsed });
  const blob = parsed.getPublicSSH();
  return {
    privateKey,
    publicKey: `ssh-ed25519 ${blob.toString('base64')}`,
    fingerprint: sshFingerprint(blob),
  };
}
