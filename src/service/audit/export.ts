/** Entries of the audit trail in a file of their own, before they are deleted: a line of JSON each, and the checkpoint last. */
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditCheckpoint } from '../../domain/audit/audit.ts';
import { DomainError } from '../../domain/error.ts';
import type { AuditListing } from '../../store/audit/audit.ts';
import { lineOf } from './messages.ts';

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
  try {
    return await write(directory, pages, checkpoint);
  } catch (error) {
    throw sentenceOf(error, directory) ?? error;
  }
}

/** What the disk says, with the path; undefined where it says nothing that is known here. */
function sentenceOf(error: unknown, directory: string): DomainError | undefined {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return undefined;
  const known: Record<string, string> = {
    EEXIST: 'is no directory',
    ENOTDIR: 'is no directory',
    ENOSPC: 'is on a disk that is full',
    EDQUOT: 'is on a disk that is full',
    EACCES: "is not the service's account's to write",
    EPERM: "is not the service's account's to write",
    EROFS: 'is read-only; under systemd, `andromeda service install` makes it writable for the service',
  };
  const reason = known[code ?? ''] ?? `cannot be written (${code})`;
  const message = `retention.exportTo: ${directory} ${reason}. Nothing was deleted.`;
  return new DomainError('invalid_state', message, { cause: error });
}

async function write(
  directory: string,
  pages: AsyncIterable<readonly AuditListing[]>,
  checkpoint: () => AuditCheckpoint,
): Promise<string> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const partial = join(directory, 'audit.partial');
  let first = 0;
  let last = 0;
  {
    await using handle = await open(partial, 'w', 0o600);
    await handle.chmod(0o600);
    for await (const page of pages) {
      first ||= page[0]?.seq ?? 0;
      last = page.at(-1)?.seq ?? last;
      await handle.appendFile(page.map((one) => `${lineOf('entry', one)}\n`).join(''));
    }
    await handle.appendFile(`${JSON.stringify({ kind: 'checkpoint', ...checkpoint() })}\n`);
    await handle.sync();
  }
  const file = join(directory, `audit-${padded(first)}-${padded(last)}.jsonl`);
  await rename(partial, file);
  await using entries = await open(directory, 'r');
  await entries.sync();
  return file;
}

/** In the order of the entries, also where a program sorts names. */
function padded(seq: number): string {
  return String(seq).padStart(12, '0');
}
