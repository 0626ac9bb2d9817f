/** The backup before a migration to a newer schema, the writes since then, and the disk space that it needs. */
import { mkdirSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { DomainError } from '../../domain/error.ts';
import { messageOf } from '../../lib/error-message.ts';
import { files } from '../engine/engine.ts';
import { writeBackup } from './backup.ts';
import { verifyBackup } from './restore.ts';

/** The disk space that the service itself needs to go on. */
const spareBytes = 128 * 1024 * 1024;
const mebibyte = 1024 * 1024;

/** Throws `invalid_state` where so many copies of the database would take the disk space that the service needs. */
export function requireSpaceForCopies(dataDir: string, copies: number): void {
  const database = join(dataDir, 'andromeda.db');
  const sizes = [database, `${database}-wal`].map(
    (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
  );
  requireFree(dataDir, copies * sizes.reduce((sum, size) => sum + size, 0));
}

/** Throws `invalid_state` where `bytes` and the service's own reserve do not fit on the disk of a directory. */
export function requireFree(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  if (free >= bytes + spareBytes) return;
  const [needed, left] = [bytes + spareBytes, free].map((size) => `${Math.ceil(size / mebibyte)} MiB`);
  throw new DomainError(
    'invalid_state',
    `The disk of ${directory} has ${left} left, and ${needed} are needed. Make room.`,
  );
}

const kept = 2;
const directoryName = 'before-upgrade';

/**
 * Makes a backup of the data directory in it, named for its last migration, and removes all but the newest few.
 * Returns its name. Throws a `DomainError` with a sentence, and then the database must not be migrated.
 */
export async function keepBeforeUpgrade(dataDir: string, last: string, now: Date): Promise<string> {
  const directory = join(dataDir, directoryName);
  const file = copyOf(dataDir, last);
  try {
    // Two copies, of which one is rewritten as the other, and then the log of the upgrade itself.
    requireSpaceForCopies(dataDir, 3);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const version = `before ${manifest.version}`;
    await writeBackup(dataDir, file, { madeAt: now.toISOString(), version });
  } catch (error) {
    throw new DomainError(
      'service_unavailable',
      `This version changes the database, and makes a backup of it first, which failed: ${messageOf(error)} Nothing was changed: mend that and start again, or start the version before.`,
      { cause: error },
    );
  }
  removeOld(directory);
  return file;
}

export function copyOf(dataDir: string, last: string): string {
  return join(dataDir, directoryName, `${last}.backup`);
}

/** Whether the copy exists; also true for one that cannot be read: `listWrittenSince` says why. */
export function hasCopy(dataDir: string, last: string): boolean {
  try {
    return statSync(copyOf(dataDir, last), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** The audit entries that a database has and its copy has not. */
export interface WrittenSince {
  madeAt: string;
  entries: { operation: string; count: number }[];
  /** The number of entries about acts of people: no refusals, and none that the service writes by itself. */
  done: number;
}

/** Checks the copy of a schema, and compares the trails. Throws a `DomainError` with a sentence where it cannot be used. */
export function listWrittenSince(dataDir: string, last: string): WrittenSince {
  const copy = copyOf(dataDir, last);
  const { madeAt } = verifyBackup(copy);
  using backup = files.openFile(copy, { readonly: true });
  const [position] = [...backup.rows<{ seq: number | null }>('select max(seq) as seq from audit_entries')];
  using view = files.view(join(dataDir, 'andromeda.db'), { unchanged: false });
  const entries = view?.rows<WrittenSince['entries'][number]>(
    'select operation, count(*) as count from audit_entries where seq > ? group by operation order by operation',
    position?.seq ?? 0,
  );
  const acts = view?.rows<{ done: number }>(
    `select count(*) as done from audit_entries where seq > ? and result = 'done'
        and operation not in ('ssh.session.opened', 'ssh.session.closed', 'deleteAuditEntries')`,
    position?.seq ?? 0,
  );
  return { madeAt, entries: entries ?? [], done: acts?.[0]?.done ?? 0 };
}

export function findSchema(dataDir: string): string | undefined {
  const file = join(dataDir, 'andromeda.db');
  if (!statSync(file, { throwIfNoEntry: false })?.size) return undefined;
  using view = files.view(file, { unchanged: false });
  if (!view?.tables().includes('kysely_migration')) return undefined;
  return (
    view.rows<{ name: string | null }>('select max(name) as name from kysely_migration')[0]?.name ?? undefined
  );
}

function removeOld(directory: string): void {
  const backups = readdirSync(directory)
    .filter((name) => name.endsWith('.backup'))
    .map((name) => join(directory, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const old of backups.slice(kept)) rmSync(old, { force: true });
}
