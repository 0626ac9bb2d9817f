/** The host keys that ssh compares: pinned ones, and the first key of each host without a pinned one. */
import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface SharedKnownHosts {
  /** All host keys, as lines of a known_hosts file. */
  read(): Promise<string>;
  /** Adds the lines of a host; does nothing when the host has some already. */
  add(alias: string, lines: string): Promise<void>;
}

export interface PreparedKeys {
  file: string;
  /** Whether ssh accepts a key that is not in the file. */
  takesNew: boolean;
}

interface KnownHosts {
  /** Returns the known_hosts file for ssh. */
  prepare(alias: string, hostKey: string | undefined): Promise<PreparedKeys>;
  /** Shares the key that ssh added to the file, if it accepted a new one. */
  keep(alias: string, prepared: PreparedKeys): Promise<void>;
}

/** `directory`: an existing directory for ssh's files. */
export function createKnownHosts(directory: string, shared: SharedKnownHosts | undefined): KnownHosts {
  const known = new Map<string, string>();

  async function find(from: SharedKnownHosts, alias: string): Promise<string | undefined> {
    if (!known.has(alias)) for (const [name, lines] of byHost(await from.read())) known.set(name, lines);
    return known.get(alias);
  }

  return {
    async prepare(alias, hostKey) {
      if (hostKey !== undefined) {
        const file = join(directory, `${alias}.pin`);
        await replaceFile(file, `${alias} ${hostKey}\n`);
        return { file, takesNew: false };
      }
      if (!shared) return { file: join(directory, 'known_hosts.met'), takesNew: true };
      const lines = await find(shared, alias);
      const file = join(directory, `${alias}.met`);
      if (lines === undefined) await rm(file, { force: true });
      else await replaceFile(file, lines);
      return { file, takesNew: lines === undefined };
    },
    async keep(alias, { file, takesNew }) {
      if (!shared || !takesNew) return;
      const lines = byHost(await readFile(file, 'utf8').catch(() => '')).get(alias);
      if (lines !== undefined) await shared.add(alias, lines);
    },
  };
}

/** A survey and the driver may write the file of a host at the same time, while the ssh of either reads it. */
async function replaceFile(file: string, text: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => undefined)) === text) return;
  const fresh = `${file}.${randomUUID()}`;
  await writeFile(fresh, text, { mode: 0o600 });
  await rename(fresh, file);
}

/** Groups the lines of a known_hosts file by host alias, their first field. */
function byHost(text: string): Map<string, string> {
  const hosts = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [alias = ''] = line.split(' ', 1);
    if (alias !== '') hosts.set(alias, `${hosts.get(alias) ?? ''}${line}\n`);
  }
  return hosts;
}
