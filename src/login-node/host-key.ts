import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ssh2 from 'ssh2';

/** The login node's Ed25519 host key: made once, kept in `dataDir`, readable by its owner only. */
export function loadHostKey(dataDir: string): { privateKey: string; publicKey: string } {
  const path = join(dataDir, 'host_key');
  if (!existsSync(path)) {
    const made = ssh2.utils.generateKeyPairSync('ed25519').private;
    writeFileSync(`${path}.new`, made, { mode: 0o600, flush: true });
    renameSync(`${path}.new`, path);
  }
  const privateKey = readFileSync(path, 'utf8');
  const parsed = ssh2.utils.parseKey(privateKey);
  if (parsed instanceof Error) throw new Error(`${path} is not a host key: ${parsed.message}`);
  return { privateKey, publicKey: `ssh-ed25519 ${parsed.getPublicSSH().toString('base64')}` };
}
