/** Where backups are kept: a directory or S3-compatible storage, which can do the same few things. */
import { DomainError } from '../../domain/error.ts';
import type { Stored } from './names.ts';

export interface Bucket {
  bucket: string;
  prefix: string;
  endpoint: string;
  region: string;
  credentials: string;
  ca: string | undefined;
}

export type StorageSettings = { directory: string } | Bucket;

/** What of the configuration a backup is made by. */
export interface KeepSettings {
  keep: number;
  to: StorageSettings;
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
