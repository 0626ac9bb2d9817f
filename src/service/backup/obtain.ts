/** A backup from where it lies, decrypted: what a restore and a drill begin with. */
import { closeSync, createReadStream, createWriteStream, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DomainError } from '../../domain/error.ts';
import { requireFree } from '../../store/data-dir/before-upgrade.ts';
import { ageMagic, type Bytes, decrypt } from './encryption.ts';
import { readIdentities } from './key-files.ts';
import { knownId, madeAt, newestFirst, type Stored } from './names.ts';
import { openStorage } from './open-storage.ts';
import type { BackupStorage, StorageSettings } from './storage.ts';
import { contentDir } from './work.ts';

export interface ObtainOptions {
  /** Where backups are kept by the configuration; undefined where it keeps none. */
  to: StorageSettings | undefined;
  /** The file with the private key; undefined: none was given. */
  identity: string | undefined;
  /** The data directory of the installation, which may not exist. */
  dataDir: string;
  /** Where it is put, for the caller to remove. */
  workDir: string;
  signal?: AbortSignal | undefined;
}

export interface Obtained {
  /** A plain backup. */
  file: string;
  /** What to call it. */
  name: string;
  bytes: number;
}

/** Whether a restore can read it where it lies. */
export function isPlainFile(source: string): boolean {
  return source !== newest && !source.startsWith('s3://') && !isEncrypted(source);
}

export const newest = 'newest';

/**
 * Fetches `source`: a file, `s3://BUCKET/NAME`, or `newest`. Throws a `DomainError` with a sentence. What it leaves is trusted
 * no more than any file, and has to be checked.
 */
export async function obtainBackup(source: string, options: ObtainOptions): Promise<Obtained> {
  const { name, bytes, content } = await find(source, options);
  // A restore makes another copy of it.
  requireFree(options.workDir, 2 * bytes);
  const file = join(contentDir(options.workDir), 'backup');
  const plain = await decrypted(content, name, options.identity);
  try {
    await pipeline(plain, createWriteStream(file, { mode: 0o600 }), { signal: options.signal });
  } catch (error) {
    options.signal?.throwIfAborted();
    throw error;
  }
  return { file, name, bytes };
}

async function find(
  source: string,
  { to, workDir, dataDir }: ObtainOptions,
): Promise<{ name: string; bytes: number; content: Bytes }> {
  if (source !== newest && !source.startsWith('s3://')) {
    const stats = statSync(source, { throwIfNoEntry: false });
    if (!stats) throw new DomainError('not_found', `There is no file ${source}.`);
    return { name: source, bytes: stats.size, content: createReadStream(source) };
  }
  if (!to)
    throw new DomainError(
      'invalid_request',
      'The configuration has no `backup` section that says where backups are.',
    );
  const storage = await openStorage(to, workDir);
  const stored = await storage.list();
  const found = source === newest ? newestOf(stored, storage, dataDir) : named(source, stored, storage);
  return { name: storage.nameOf(found.name), bytes: found.bytes, content: storage.read(found.name) };
}

/** Of one installation: the one whose data directory it is, or the only one that there is. */
function newestOf(stored: readonly Stored[], storage: BackupStorage, dataDir: string): Stored {
  const all = newestFirst(stored);
  const id = knownId(dataDir);
  const own = id === undefined ? all : newestFirst(stored, id);
  const [first] = own;
  if (!first) throw new DomainError('not_found', `There is no backup in ${storage.nameOf('')}.`);
  const others = all.filter(({ name }) => !sameInstallation(name, first.name));
  if (id === undefined && others[0])
    throw new DomainError(
      'invalid_request',
      `There are backups of several installations, such as ${storage.nameOf(first.name)} and ${storage.nameOf(others[0].name)}. Name the one that is meant.`,
    );
  return first;
}

function sameInstallation(a: string, b: string): boolean {
  return a.split('-')[1] === b.split('-')[1];
}

function named(source: string, stored: readonly Stored[], storage: BackupStorage): Stored {
  const found = newestFirst(stored).find(({ name }) => storage.nameOf(name) === source);
  if (found) return found;
  throw new DomainError(
    'not_found',
    `There is no backup ${source} where the configuration keeps them (${storage.nameOf('')}). \`andromeda backup --list\` says what is there.`,
  );
}

/** The backups that lie in a storage, the newest first, as people name them. */
export async function listBackups(
  to: StorageSettings,
  workDir: string,
): Promise<{ name: string; bytes: number; at: string }[]> {
  const storage = await openStorage(to, workDir);
  return newestFirst(await storage.list()).map(({ name, bytes }) => ({
    name: storage.nameOf(name),
    bytes,
    at: madeAt(name) ?? '',
  }));
}

/** Decrypts what begins as age's files do; the rest is taken as it is. */
async function decrypted(content: Bytes, name: string, identity: string | undefined): Promise<Bytes> {
  const iterator = content[Symbol.asyncIterator]();
  const head: Uint8Array[] = [];
  let length = 0;
  while (length < ageMagic.length) {
    const { done, value } = await iterator.next();
    if (done) break;
    head.push(value);
    length += value.length;
  }
  async function* whole(): Bytes {
    yield* head;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  const begins = Buffer.concat(head).toString('latin1', 0, ageMagic.length);
  if (begins !== ageMagic) return whole();
  if (identity === undefined)
    throw new DomainError('invalid_request', `${name} is encrypted. Give the private key: --identity FILE.`);
  return decrypt(whole(), readIdentities(identity), name);
}

function isEncrypted(file: string): boolean {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false;
  try {
    const descriptor = openSync(file, 'r');
    const head = Buffer.alloc(ageMagic.length);
    readSync(descriptor, head);
    closeSync(descriptor);
    return head.toString('latin1') === ageMagic;
  } catch {
    // The code that reads it reports why it cannot.
    return false;
  }
}
