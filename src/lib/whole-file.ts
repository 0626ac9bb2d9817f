/** Atomic writes: a file is there whole or not at all, also after a crash. */
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';

/** Writes a file to the disk and then renames it over its name, with mode 0600 when it is new, or with `mode`. One writer at a time. */
export function writeWhole(file: string, content: string | Buffer, mode?: number): void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, content, { mode: mode ?? 0o600, flush: true });
  // The umask may have reduced the mode.
  if (mode !== undefined) chmodSync(fresh, mode);
  renameSync(fresh, file);
}

/** Waits until a file, or the entries of a directory, are on the disk. */
export function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
