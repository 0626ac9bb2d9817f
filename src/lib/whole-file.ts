/** Files that are there whole or not at all, also after a crash. */
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';

/** Writes a file, of mode 0600 when it is new, or of `mode`, to the disk and then over its name. One writer at a time. */
export function writeWhole(file: string, content: string | Buffer, mode?: number): void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, content, { mode: mode ?? 0o600, flush: true });
  // The umask has a say in what it was made with.
  if (mode !== undefined) chmodSync(fresh, mode);
  renameSync(fresh, file);
}

/** Waits until a file, or what a directory lists, is on the disk. */
export function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
