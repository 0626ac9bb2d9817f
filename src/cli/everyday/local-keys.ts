/** The SSH keys on this machine that could be registered, or are, and how a person comes to one. A key is registered only once. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSshPublicKey, plainKeyType, type SshPublicKey } from '../../domain/access/ssh-key.ts';
import { homeDirectory } from '../session/session.ts';

export interface LocalKey extends SshPublicKey {
  /** The public part; the private one is next to it, without `.pub`. */
  file: string;
}

export function sshDirectory(): string {
  return join(homeDirectory(), '.ssh');
}

/** The Ed25519 keys in ~/.ssh, the usual one first; those in security keys too. */
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

/** Whether every installation takes keys of its type. */
export function isPlain({ type }: LocalKey): boolean {
  return type === plainKeyType;
}

export function privateFileOf({ file }: LocalKey): string {
  return file.replace(/\.pub$/, '');
}

async function readKey(file: string): Promise<LocalKey | undefined> {
  try {
    return { ...parseSshPublicKey(await readFile(file, 'utf8'), { securityKeys: true }), file };
  } catch {
    return undefined; // of another kind, or unreadable
  }
}

/** What to type. `known`: the fingerprints of all keys that were ever registered. */
export async function adviseNewKey(known: ReadonlySet<string>): Promise<string> {
  for (const key of await listLocalKeys())
    if (isPlain(key) && !known.has(key.fingerprint) && (await hasPrivateFile(key)))
      return `\`andromeda keys add ${asWord(key.file)}\``;
  const name = await freeName();
  return `\`ssh-keygen -t ed25519 -f ${asWord(name)}\`, and then \`andromeda keys add ${asWord(`${name}.pub`)}\``;
}

export function hasPrivateFile(key: LocalKey): Promise<boolean> {
  return stat(privateFileOf(key)).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** The first name for a key that nothing in ~/.ssh has. */
async function freeName(): Promise<string> {
  const taken = await readdir(sshDirectory()).catch((): string[] => []);
  for (let number = 1; ; number++) {
    const name = number === 1 ? 'id_ed25519' : `id_ed25519_${number}`;
    if (!taken.includes(name) && !taken.includes(`${name}.pub`)) return join(sshDirectory(), name);
  }
}

/** A file as one word of a command. */
export function asWord(file: string): string {
  if (process.platform === 'win32') return file.includes(' ') ? `"${file}"` : file;
  return /^[\w@%+=:,./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
}
