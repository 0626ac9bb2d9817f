/** The directory of kept backups, such as a mount of another machine's disk. Its errors are sentences for the operator. */
import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { newestFirst, type Stored } from './names.ts';

export function listBackups(directory: string): Promise<Stored[]> {
  return withDirectoryInErrors(directory, async () => {
    const entries = await readdir(directory, { withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    const stored = files.map(async ({ name }) => ({ name, bytes: (await stat(join(directory, name))).size }));
    return newestFirst(await Promise.all(stored));
  });
}

export function removeBackup(directory: string, name: string): Promise<void> {
  return withDirectoryInErrors(directory, () => unlink(join(directory, name)));
}

/** Removes partial files of a killed attempt. The caller holds the lock: no other backup writes meanwhile. */
export function sweep(directory: string, id: string): Promise<void> {
  const ours = new RegExp(`^\\.andromeda-${id}-\\w+\\.backup\\.part$`);
  return withDirectoryInErrors(directory, async () => {
    for (const name of await readdir(directory))
      if (ours.test(name)) await rm(join(directory, name), { force: true });
  });
}

/** Copies a backup into the directory and verifies it by reading it back; otherwise leaves no file by that name. Resolves to its size. */
export function storeBackup(copy: string, directory: string, name: string, signal?: AbortSignal) {
  // A name that no finished backup has.
  const part = join(directory, `.${name}.part`);
  return withDirectoryInErrors(directory, async () => {
    try {
      const written = await writeSynced(part, copy, signal);
      if ((await sumOf(part, signal)) !== written)
        throw unusable(
          `${join(directory, name)} was written, and what was read back is not the same. The disk is not to be trusted; nothing was kept there.`,
        );
      await rename(part, join(directory, name));
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
    await using entries = await open(directory, 'r');
    await entries.sync();
    return statSync(join(directory, name)).size;
  });
}

/** Resolves to the SHA-256 of the written bytes. */
async function writeSynced(path: string, source: string, signal?: AbortSignal): Promise<string> {
  await using file = await open(path, 'wx', 0o600);
  const sum = await sumOf(source, signal, (chunk) => file.writeFile(chunk));
  await file.sync();
  return sum;
}

async function sumOf(
  path: string,
  signal: AbortSignal | undefined,
  use?: (chunk: Buffer) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024, signal })) {
    hash.update(chunk);
    await use?.(chunk);
  }
  return hash.digest('hex');
}

async function withDirectoryInErrors<T>(directory: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw unusable(sentence(directory, error as NodeJS.ErrnoException), error);
  }
}

function unusable(message: string, cause?: unknown): DomainError {
  return new DomainError('service_unavailable', message, { cause });
}

function sentence(directory: string, { code, message, path }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') {
    const missing = path === undefined || dirname(path) === directory ? directory : path;
    return `${missing} does not exist. Make the directory, or mount what it lies on.`;
  }
  if (code === 'ENOSPC' || code === 'EDQUOT') return `The disk of ${directory} is full.`;
  if (code === 'EACCES' || code === 'EPERM')
    return `${directory} is not the service's account's to read and write.`;
  if (code === 'EROFS')
    return `${directory} is read-only. Under systemd, \`andromeda service install\` makes it writable for the service.`;
  return `${directory} does not work: ${message}.`;
}
