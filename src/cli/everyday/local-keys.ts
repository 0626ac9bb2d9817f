/** The SSH keys on this machine that could be registered, or are. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSshPublicKey, type SshPublicKey } from '../../domain/ssh-key.ts';
import { homeDirectory } from '../session/profile-file.ts';

export interface LocalKey extends SshPublicKey {
  /** The public part; the private one is beside it, without `.pub`. */
  file: string;
}

/** The person's directory for ssh. */
export function sshDirectory(): string {
  return join(homeDirectory(), '.ssh');
}

/** The Ed25519 keys in ~/.ssh, the usual one first. */
export async function listLocalKeys(): Promise<LocalKey[]> {
  const names = await readdir(sshDirectory()).catch(() => []);
  const usual = 'id_ed25519.pub';
  const files = names
    .filter((name) => name.endsWith('.pub'))
    .sort((a, b) => Number(b === usual) - Number(a === usual) || a.localeCompare(b))
    .map((name) => join(sshDirectory(), name));
  const keys = await Promise.all(files.map(readKey));
  return keys.filter((key) => key !== undefined);
}

/** The private key that goes with one of the fingerprints, where it lies in ~/.ssh. */
export async function findIdentityFile(fingerprints: readonly string[]): Promise<string | undefined> {
  for (const key of await listLocalKeys()) {
    const file = privateFileOf(key);
    if (fingerprints.includes(key.fingerprint) && (await readFile(file).then(Boolean, () => false)))
      return file;
  }
  return undefined;
}

export function privateFileOf({ file }: LocalKey): string {
  return file.replace(/\.pub$/, '');
}

async function readKey(file: string): Promise<LocalKey | undefined> {
  try {
    return { ...parseSshPublicKey(await readFile(file, 'utf8')), file };
  } catch {
    return undefined; // of another kind, or unreadable
  }
}
