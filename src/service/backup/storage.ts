/** Where backups are kept: a directory or S3-compatible storage, which can do the same few things. */
import { DomainError } from '../../domain/error.ts';
import type { Stored } from './names.ts';

export interface Bucket {
  bucket: string;
  /** Before each name: empty, or ends with a slash. */
  prefix: string;
  endpoint: string;
  region: string;
  /** The file with the key. */
  credentials: string;
  /** The file with whom to trust over TLS, in PEM; undefined: the well-known authorities. */
  ca: string | undefined;
}

export type StorageSettings = { directory: string } | Bucket;

/** What of the configuration a backup is made by. */
export interface KeepSettings {
  /** So many are kept. */
  keep: number;
  to: StorageSettings;
  /** Public keys of age; empty: it is not encrypted. */
  encryptTo: readonly string[];
}

export interface BackupStorage {
  /** What to call a backup by that lies there, also on a command line. */
  nameOf(name: string): string;
  /** What lies there that could be a backup. */
  list(): Promise<Stored[]>;
  /**
   * Writes all of `source`, or nothing by that name. `bytes`: how much it is at least. `check` says of what was read back
   * whether it is the same, before it counts.
   */
  write(name: string, source: AsyncIterable<Uint8Array>, options: WriteOptions): Promise<void>;
  read(name: string): AsyncIterable<Uint8Array>;
  remove(name: string): Promise<void>;
  /** Removes what a killed attempt has left behind. The caller holds the lock: no other backup writes meanwhile. */
  sweep(id: string): Promise<void>;
}

export interface WriteOptions {
  bytes: number;
  signal: AbortSignal | undefined;
  /** Reads what was written to its end. Throws where that is not what was to be written. */
  check(written: AsyncIterable<Uint8Array>): Promise<void>;
}

/** Tells one storage from another. */
export function describeStorage(to: StorageSettings): string {
  return 'directory' in to ? to.directory : `${to.endpoint}/${to.bucket}/${to.prefix}`;
}

/** A storage that cannot do what it is asked, in a sentence for the operator. */
export function storageError(sentence: string, cause?: unknown): DomainError {
  return new DomainError('service_unavailable', sentence, { cause });
}

/** The same storage, whose errors are what `sentenceOf` makes of them; undefined: they are thrown on. */
export function withSentences(
  storage: BackupStorage,
  sentenceOf: (error: unknown) => DomainError | undefined,
): BackupStorage {
  const named =
    <Args extends unknown[], T>(work: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      try {
        return await work(...args);
      } catch (error) {
        throw sentenceOf(error) ?? error;
      }
    };
  return {
    nameOf: storage.nameOf,
    list: named(storage.list),
    write: named(storage.write),
    remove: named(storage.remove),
    sweep: named(storage.sweep),
    async *read(name) {
      try {
        yield* storage.read(name);
      } catch (error) {
        throw sentenceOf(error) ?? error;
      }
    },
  };
}
