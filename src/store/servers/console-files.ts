/** Files of the console's pages, of every version of which a server has sent pages of late. */
import type { Reader, Tx } from '../engine/index.ts';
import { findRow, insertRow, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';

export interface KeptConsoleFile {
  path: string;
  type: string;
  /** Changes with the content. */
  tag: string;
  /** The content, packed with Brotli. */
  packed: Buffer;
}

/** Adds those that are missing, notes that pages name all of them now, and removes what none has named for so long. */
export async function keepConsoleFiles(
  tx: Tx,
  files: readonly KeptConsoleFile[],
  forgetMs: number,
): Promise<void> {
  const named_at = toTime(tx.now);
  for (const { path, type, tag, packed } of files) {
    const row = { path, type, tag, packed: packed.toString('base64'), named_at };
    if (await findRow(tx.db, 'console_files', { path }))
      await updateRows(tx.db, 'console_files', { path }, { named_at });
    else await insertRow(tx.db, 'console_files', row);
  }
  await tx.db
    .deleteFrom('console_files')
    .where('named_at', '<', toTime(tx.now - forgetMs))
    .execute();
}

export async function findConsoleFile(db: Reader, path: string): Promise<KeptConsoleFile | undefined> {
  const row = await findRow(db, 'console_files', { path });
  return row && { path, type: row.type, tag: row.tag, packed: Buffer.from(row.packed, 'base64') };
}
