/** How a person comes to a key that can be registered: a key is registered only once, also where it was revoked since. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type LocalKey, listLocalKeys, privateFileOf, sshDirectory } from './local-keys.ts';

/** What to type. `known`: the fingerprints of all keys that were ever registered. */
export async function adviseNewKey(known: ReadonlySet<string>): Promise<string> {
  for (const key of await listLocalKeys())
    if (!known.has(key.fingerprint) && (await hasPrivateFile(key)))
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
  const usual = join(sshDirectory(), 'id_ed25519');
  for (let number = 1; number < 100; number++) {
    const name = number === 1 ? usual : `${usual}_${number}`;
    if (!(await exists(name)) && !(await exists(`${name}.pub`))) return name;
  }
  return `${usual}_${Date.now()}`;
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** A file as one word of a command. */
export function asWord(file: string): string {
  if (process.platform === 'win32') return file.includes(' ') ? `"${file}"` : file;
  return /^[\w@%+=:,./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
}
