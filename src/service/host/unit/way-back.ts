/** What is done with the database on the way back to the version before, and what is said of it. */
import type { WrittenSince } from '../../../store/data-dir/before-upgrade.ts';
import { refusal } from '../installation.ts';
import type { SchemaState } from './schema-process.ts';
import type { UpgradeState } from './upgrade-state.ts';

/**
 * What is lost by the copy of the database, where the version before needs that; undefined where it takes the database as it is.
 * Throws `invalid_state` where it can take neither.
 */
export function lossOf(
  { version, schema }: Pick<UpgradeState, 'version' | 'schema'>,
  present: SchemaState,
): WrittenSince | undefined {
  if (present.schema === schema) return undefined;
  if (present.isShared) {
    const { oldestServed } = present;
    if (schema !== undefined && oldestServed !== undefined && oldestServed <= schema) return undefined;
    throw refusal(
      `The shared database has a schema that ${version} does not work with, and there is no copy of it here. To go back all the same, stop every server, restore a dump of before (pg_restore) into a new database, and install ${version} by hand. Nothing was changed.`,
    );
  }
  if (present.written) return present.written;
  const copy =
    schema === undefined ? 'there was no database before' : 'the copy of before is gone from before-upgrade/';
  throw refusal(
    `The database has a schema that ${version} does not work with, and ${copy}. Nothing was changed.`,
  );
}

/** Throws `invalid_state` where people have done something that the copy does not have. */
export function requireNothingDone({ done }: WrittenSince): void {
  if (done > 0)
    throw refusal(
      'The audit trail has entries of what people did since the database was changed. `andromeda service rollback` goes back, and loses them.',
    );
}

export function lossText({ madeAt, entries }: WrittenSince): string {
  const rows = entries.map(({ operation, count }) => `  ${count} ${operation}\n`);
  const trail =
    rows.length === 0
      ? 'The audit trail has nothing since; people who signed in since do so again.\n'
      : `What was written since is lost, of the audit trail:\n\n${rows.join('')}\nRevoke again the keys, and remove again the people, that must not get in.\n`;
  return `The upgrade changed the database's schema, so the copy of ${madeAt} takes its place. ${trail}`;
}
