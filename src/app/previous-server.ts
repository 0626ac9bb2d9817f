/**
 * What this server was called before it was started again: sessions of that name are its own. Written down in the data
 * directory with what tells it from a copy, since the server that it was copied from may live.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../lib/whole-file.ts';

interface Noted {
  server: string;
  /** Which data directory it was, and since which start of the host. */
  directory: string;
  boot: string;
}

/** The name from before, if it was here and nobody else can have it. From now on `server` is written down. */
export function takeOverFrom(
  dataDir: string,
  { server, isLive }: { server: string; isLive(id: string): boolean },
): string | undefined {
  const file = join(dataDir, 'server.json');
  const present: Noted = { server, ...directoryAndBoot(dataDir) };
  const noted = read(file);
  writeWhole(file, `${JSON.stringify(present)}\n`);
  if (!noted || noted.directory !== present.directory) return undefined;
  return noted.boot === present.boot || !isLive(noted.server) ? noted.server : undefined;
}

function directoryAndBoot(dataDir: string): Omit<Noted, 'server'> {
  const { dev, ino } = statSync(dataDir, { bigint: true });
  const bootFile = '/proc/sys/kernel/random/boot_id';
  const boot = existsSync(bootFile) ? readFileSync(bootFile, 'utf8').trim() : '';
  return { directory: `${dev}:${ino}`, boot };
}

function read(file: string): Noted | undefined {
  try {
    const { server, directory, boot } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Noted>;
    return server && directory ? { server, directory, boot: boot ?? '' } : undefined;
  } catch {
    // There is none, or half of one: then its sessions are those of a server that is gone.
    return undefined;
  }
}
