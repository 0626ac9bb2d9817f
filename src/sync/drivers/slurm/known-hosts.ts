/**
 * The keys that hosts without a pinned one showed first: in a file of this server or, where several servers share a database,
 * with all of them, so that each host is taken at its word once and not once by each server.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface SharedKnownHosts {
  /** Lines as ssh has them in known_hosts. */
  read(): Promise<string>;
  /** Adds the lines of a host that has none yet. */
  add(alias: string, lines: string): Promise<void>;
}

export interface KnownHosts {
  /** The file for ssh, and whether a key that is not in it is taken. */
  prepare(alias: string, hostKey: string | undefined): Promise<{ file: string; takesNew: boolean }>;
  /** Keeps what ssh has put into the file, if it may. */
  keep(alias: string, prepared: { file: string; takesNew: boolean }): Promise<void>;
}

/** `directory`: where files for ssh are; it exists. */
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
        await writeFile(file, `${alias} ${hostKey}\n`, { mode: 0o600 });
        return { file, takesNew: false };
      }
      if (!shared) return { file: join(directory, 'known_hosts.met'), takesNew: true };
      const lines = await find(shared, alias);
      const file = join(directory, `${alias}.met`);
      if (lines === undefined) await rm(file, { force: true });
      else await writeFile(file, lines, { mode: 0o600 });
      return { file, takesNew: lines === undefined };
    },
    async keep(alias, { file, takesNew }) {
      if (!shared || !takesNew) return;
      const lines = byHost(await readFile(file, 'utf8').catch(() => '')).get(alias);
      if (lines !== undefined) await shared.add(alias, lines);
    },
  };
}

/** Lines of known_hosts by the host that they begin with. */
export function byHost(text: string): Map<string, string> {
  const hosts = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [alias = ''] = line.split(' ', 1);
    if (alias !== '') hosts.set(alias, `${hosts.get(alias) ?? ''}${line}\n`);
  }
  return hosts;
}
