/** Looking at a PostgreSQL that servers share, beside them: whether it has what this version made there, and nothing else. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listSchemaObjects, openSqlite, type SchemaObjects, type ServerView, versionOf } from './engine.ts';
import { listSteps, migrate } from './migrate.ts';
import { migrations } from './migrations/index.ts';

export interface SharedInspection {
  /** `new`: the first start fills it. Of what another version made, this one knows no more. */
  state: 'new' | 'older' | 'newer' | 'known';
  /** What of the schema is not there, as `table users`, `column users.name` … */
  missing: string[];
  /** Tables that are nobody's of ours. */
  foreign: string[];
  /** `andromeda migrate` has copied the installation out of it. */
  isMovedAway: boolean;
}

const steps = 'kysely_migration';

/** Asks what is there. Throws a `DomainError` where that cannot be asked. */
export async function inspectShared({ reader, listObjects }: ServerView): Promise<SharedInspection> {
  const found = await listObjects();
  const expected = await expectedObjects();
  const foreign = [...found.tables.keys()].filter((name) => !expected.tables.has(name));
  const known = { foreign, missing: [] as string[], isMovedAway: false };
  if ([...expected.tables.keys()].every((name) => !found.tables.has(name))) return { ...known, state: 'new' };
  const done = found.tables.has(steps) ? await listSteps(reader) : undefined;
  // A step of a newer version can have added anything.
  if (done?.some((name) => !(name in migrations))) return { ...known, foreign: [], state: 'newer' };
  if (done && Object.keys(migrations).some((name) => !done.includes(name)))
    return { ...known, state: 'older' };
  const missing = missingOf(expected, found);
  return { state: 'known', missing, foreign, isMovedAway: (await versionOf(reader)) === undefined };
}

function missingOf(expected: SchemaObjects, found: SchemaObjects): string[] {
  const missing: string[] = [];
  for (const [table, columns] of expected.tables) {
    const there = found.tables.get(table);
    if (!there) missing.push(`table ${table}`);
    else for (const one of columns) if (!there.includes(one)) missing.push(`column ${table}.${one}`);
  }
  // Those of a table go with it.
  if (missing.length > 0) return missing;
  for (const name of expected.indexes) if (!found.indexes.has(name)) missing.push(`index ${name}`);
  for (const name of expected.triggers) if (!found.triggers.has(name)) missing.push(`trigger ${name}`);
  return missing;
}

/** What the same migrations make of an empty file. */
async function expectedObjects(): Promise<SchemaObjects> {
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-schema-'));
  const file = join(directory, 'andromeda.db');
  try {
    const connections = openSqlite(file);
    try {
      return await connections.migrating(async (db) => {
        await migrate(db, file);
        return listSchemaObjects(db);
      });
    } finally {
      await connections.close();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
