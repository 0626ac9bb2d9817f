/** Entries of the audit trail in a file of their own, before they are deleted: a line of JSON each, and the checkpoint last. */
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditCheckpoint } from '../domain/audit-head.ts';
import type { AuditListing } from '../store/audit.ts';
import { entryMessage } from './messages.ts';

/**
 * Writes pages of entries and what `end` returns behind them; returns the file, which is whole and on disk then. Without
 * a directory it only reads the pages.
 */
export async function writeExport(
  directory: string | undefined,
  pages: AsyncIterable<readonly AuditListing[]>,
  checkpoint: () => AuditCheckpoint,
): Promise<string | undefined> {
  if (directory === undefined) {
    for await (const _ of pages);
    return undefined;
  }
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const partial = join(directory, 'audit.partial');
  let first = 0;
  let last = 0;
  const handle = await open(partial, 'w', 0o600);
  try {
    await handle.chmod(0o600);
    for await (const page of pages) {
      first ||= page[0]?.seq ?? 0;
      last = page.at(-1)?.seq ?? last;
      await handle.appendFile(page.map((one) => `${entryMessage(one).json}\n`).join(''));
    }
    await handle.appendFile(`${JSON.stringify({ kind: 'checkpoint', ...checkpoint() })}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  const file = join(directory, `audit-${padded(first)}-${padded(last)}.jsonl`);
  await rename(partial, file);
  await syncDirectory(directory);
  return file;
}

/** In the order of the entries, also where a program sorts names. */
function padded(seq: number): string {
  return String(seq).padStart(12, '0');
}

async function syncDirectory(directory: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(directory, 'r');
    await handle.sync();
  } finally {
    await handle?.close();
  }
}
