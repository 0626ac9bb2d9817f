/** The files of dist/release, or of $ANDROMEDA_RELEASE. */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const releaseDirectory = resolve(
  process.env['ANDROMEDA_RELEASE'] ?? join(import.meta.dirname, '../../../dist/release'),
);

/** The one file of this kind. Throws a sentence where there is none. */
export function released(kind: RegExp): string {
  const found = readdirSync(releaseDirectory).filter((name) => kind.test(name));
  if (found.length !== 1) throw new Error(`${releaseDirectory} has ${found.length} files like ${kind}.`);
  return join(releaseDirectory, found[0] ?? '');
}
