/** Files that are there whole or not at all, also after a crash. */
import { renameSync, writeFileSync } from 'node:fs';

/** Writes a file, of mode 0600 when it is new, to the disk and then over its name. One writer at a time. */
export function writeWhole(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}
