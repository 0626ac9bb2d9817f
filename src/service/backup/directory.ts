/** Backups in a directory, such as the mount of another machine's disk. */
import { createReadStream } from 'node:fs';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type BackupStorage, storageError, withSentences } from './storage.ts';

/** What is being written has another name, which no backup has. */
const partial = (name: string) => `.${name}.part`;

export function openDirectory(directory: string): BackupStorage {
  const at = (name: string) => join(directory, name);
  const storage: BackupStorage = {
    nameOf: at,
    async list() {
      const entries = await readdir(directory, { withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile() && entry.name.startsWith('andromeda-'));
      return Promise.all(files.map(async ({ name }) => ({ name, bytes: (await stat(at(name))).size })));
    },
    async write(name, source, { signal, check }) {
      const part = at(partial(name));
      try {
        await writeSynced(part, source, signal);
        await check(createReadStream(part));
        signal?.throwIfAborted();
        await rename(part, at(name));
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
      await using entries = await open(directory, 'r');
      await entries.sync();
    },
    read: (name) => createReadStream(at(name)),
    remove: (name) => rm(at(name), { force: true }),
    async sweep(id) {
      const ours = new RegExp(`^\\.andromeda-${id}-\\w+\\.backup(\\.age)?\\.part$`);
      for (const name of await readdir(directory)) if (ours.test(name)) await rm(at(name), { force: true });
    },
  };
  return withSentences(storage, (error) => {
    const isOfSystem = 'code' in (error as object) && 'syscall' in (error as object);
    return isOfSystem ? storageError(sentence(directory, error as NodeJS.ErrnoException), error) : undefined;
  });
}

async function writeSynced(
  path: string,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  for await (const chunk of source) {
    signal?.throwIfAborted();
    await file.writeFile(chunk);
  }
  await file.sync();
}

function sentence(directory: string, { code, message, path }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT')
    return `${path ?? directory} does not exist. Make the directory, or mount what it lies on.`;
  if (code === 'ENOSPC' || code === 'EDQUOT') return `The disk of ${directory} is full.`;
  if (code === 'EACCES' || code === 'EPERM')
    return `${directory} is not the service's account's to read and write.`;
  if (code === 'EROFS')
    return `${directory} is read-only. Under systemd, \`andromeda service install\` makes it writable for the service.`;
  return `${directory} does not work: ${message}.`;
}
