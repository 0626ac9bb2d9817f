/** One backup to where the configuration says: written, checked, encrypted, kept, read back, and the oldest removed. */
import { createHash } from 'node:crypto';
import { createReadStream, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../lib/error-message.ts';
import { writeBackup } from '../../store/data-dir/backup.ts';
import { requireSpaceForCopies } from '../../store/data-dir/before-upgrade.ts';
import { noteKeptBackup } from '../../store/data-dir/last-backup.ts';
import { type Bytes, encrypt, requireRecipients } from './encryption.ts';
import { backupName, installationId, tooMany } from './names.ts';
import { openStorage } from './open-storage.ts';
import { type BackupStorage, describeStorage, type KeepSettings, storageError } from './storage.ts';
import { contentDir, withWorkDir } from './work.ts';

export interface KeepOptions {
  settings: KeepSettings;
  dataDir: string;
  /** RFC 3339. */
  madeAt: string;
  version: string;
  /** Files of the installation outside the data directory. */
  elsewhere: readonly string[];
  onProgress?: ((part: number) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** A storage that is open already. */
  storage?: BackupStorage;
}

export interface Kept {
  /** What to call it on a command line. */
  file: string;
  bytes: number;
  /** Files that belong into it and could not be read. */
  missing: string[];
  removed: number;
  /** Why older ones could not be removed, in a sentence; undefined where all went well. */
  notRemoved: string | undefined;
}

/** Throws a `DomainError` with a sentence; then nothing counts as a backup that did not before. */
export async function keepBackup(options: KeepOptions): Promise<Kept> {
  const { dataDir, settings, madeAt, version, elsewhere, signal, onProgress } = options;
  if (settings.encryptTo.length > 0) await requireRecipients(settings.encryptTo);
  // First of all: a full disk takes no directory either. One copy is rewritten as the other.
  requireSpaceForCopies(dataDir, 2);
  return withWorkDir(dataDir, async (workDir) => {
    const storage = options.storage ?? (await openStorage(settings.to, workDir));
    const id = installationId(dataDir);
    await storage.sweep(id);
    const copy = join(contentDir(workDir), 'copy');
    const { missing } = await writeBackup(dataDir, copy, {
      madeAt,
      version,
      elsewhere,
      onProgress,
      signal,
      unnoted: true,
    });
    const name = backupName(id, madeAt, settings.encryptTo.length > 0);
    const plain: Bytes = createReadStream(copy, { highWaterMark: 1024 * 1024 });
    const content = settings.encryptTo.length > 0 ? encrypt(plain, settings.encryptTo) : plain;
    const bytes = await writeVerified(storage, name, { content, least: statSync(copy).size, signal });
    rmSync(copy);
    const file = storage.nameOf(name);
    noteKeptBackup(dataDir, { at: madeAt, file, bytes, storage: describeStorage(settings.to) });
    const old = await removeOld(storage, { id, keep: settings.keep, good: name });
    return { file, bytes, missing, ...old };
  });
}

/** Writes it, and reads it back: the same bytes, or an error. Resolves to their number. */
async function writeVerified(
  storage: BackupStorage,
  name: string,
  { content, least, signal }: { content: Bytes; least: number; signal: AbortSignal | undefined },
): Promise<number> {
  const sent = createSum();
  await storage.write(name, sent.over(content), {
    bytes: least,
    signal,
    async check(written) {
      const got = createSum();
      for await (const _ of got.over(written)) signal?.throwIfAborted();
      if (got.bytes() === sent.bytes() && got.digest() === sent.digest()) return;
      throw storageError(
        `${storage.nameOf(name)} was written with ${sent.bytes()} bytes, and what was read back is not the same (${got.bytes()} bytes). The storage is not to be trusted; nothing was kept there.`,
      );
    },
  });
  return sent.bytes();
}

function createSum() {
  const hash = createHash('sha256');
  let bytes = 0;
  return {
    async *over(source: Bytes): Bytes {
      for await (const chunk of source) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
    },
    bytes: () => bytes,
    digest: () => hash.copy().digest('hex'),
  };
}

/** The backup is as good where this fails. */
async function removeOld(
  storage: BackupStorage,
  options: { id: string; keep: number; good: string },
): Promise<Pick<Kept, 'removed' | 'notRemoved'>> {
  let removed = 0;
  try {
    const stored = await storage.list();
    if (!stored.some(({ name }) => name === options.good))
      throw storageError(
        `${storage.nameOf(options.good)} is not in the list of what is there, so no older one was removed.`,
      );
    for (const name of tooMany(stored, options)) {
      await storage.remove(name);
      removed += 1;
    }
    return { removed, notRemoved: undefined };
  } catch (error) {
    return { removed, notRemoved: messageOf(error) };
  }
}
