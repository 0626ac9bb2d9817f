/** Names of backups in a directory: whose they are, how old, and which exceed the number to keep. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { writeWhole } from '../../lib/whole-file.ts';

export interface Stored {
  name: string;
  bytes: number;
}

const form = /^andromeda-([0-9a-f]{12})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;

/**
 * The ID that distinguishes an installation's backups from others in the same directory. Each backup contains it, so
 * that a restored installation continues with it.
 */
export function installationId(dataDir: string): string {
  const known = knownId(dataDir);
  if (known !== undefined) return known;
  const id = randomBytes(6).toString('hex');
  writeWhole(fileOf(dataDir), JSON.stringify({ id }));
  return id;
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'backup-id.json');
}

/** The ID where the installation has one; undefined where it has none. */
export function knownId(dataDir: string): string | undefined {
  try {
    const { id } = JSON.parse(readFileSync(fileOf(dataDir), 'utf8')) as { id: string };
    return /^[0-9a-f]{12}$/.test(id) ? id : undefined;
  } catch {
    return undefined;
  }
}

/** `at`: RFC 3339. */
export function backupName(id: string, at: string): string {
  return `andromeda-${id}-${at.replace(/\.\d+/, '').replaceAll(/[-:]/g, '')}.backup`;
}

/** The time of a backup by its name, in RFC 3339; undefined for a name that is not one of ours. */
export function madeAt(name: string): string | undefined {
  const [, , year, month, day, hour, minute, second] = form.exec(name) ?? [];
  return year && `${year}-${month}-${day}T${hour}:${minute}:${second}Z`;
}

/** The backups in a listing, newest first; with `id`, those of one installation. */
export function newestFirst(stored: readonly Stored[], id?: string): Stored[] {
  return stored
    .filter(({ name }) => (id === undefined ? form.test(name) : form.exec(name)?.[1] === id))
    .sort((a, b) => timeOf(b.name).localeCompare(timeOf(a.name)));
}

function timeOf(name: string): string {
  return madeAt(name) ?? '';
}

/** The backups to remove: of one installation, beyond the `keep` newest, and never `good`, the one that was just verified. */
export function tooMany(
  stored: readonly Stored[],
  { id, keep, good }: { id: string; keep: number; good: string },
): string[] {
  const names = newestFirst(stored, id).map(({ name }) => name);
  // A clock that was ahead has left names that look newer than the verified one.
  const others = names.filter((name) => name !== good);
  return others.slice(keep - 1);
}

/**
 * The newest backup of the installation with this ID; without an ID, of the only installation in the directory.
 * Throws a `DomainError` with a sentence.
 */
export function newestOf(stored: readonly Stored[], directory: string, id: string | undefined): Stored {
  const [first, ...others] = newestFirst(stored, id);
  if (!first) throw new DomainError('not_found', `There is no backup in ${directory}.`);
  const other = others.find(({ name }) => form.exec(name)?.[1] !== form.exec(first.name)?.[1]);
  if (!other) return first;
  throw new DomainError(
    'invalid_request',
    `There are backups of several installations in ${directory}, such as ${first.name} and ${other.name}. Name the one that is meant.`,
  );
}
