/** Which keys the service uses, and since when: a file next to the keys, which a command on the host reads. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AllKeysInUse, type KeyKind, keyKinds, takenUp } from '../../domain/key-rotation.ts';
import { serviceSecrets } from '../../domain/service-secret.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { files } from '../engine/engine.ts';

/** Records the keys that a service uses which has just started. Returns them, with since when. */
export function noteKeysInUse(
  dataDir: string,
  taken: Partial<Record<KeyKind, { current: string; next?: string | undefined }>>,
  now: number,
): AllKeysInUse {
  const before = readKeysInUse(dataDir);
  const at = new Date(now).toISOString();
  const after: AllKeysInUse = {};
  for (const kind of keyKinds) {
    const ids = taken[kind];
    if (ids) after[kind] = takenUp(before[kind], { ...ids, at });
  }
  if (JSON.stringify(after) === JSON.stringify(before)) return after;
  mkdirSync(join(dataDir, 'keys'), { recursive: true, mode: 0o700 });
  writeWhole(fileOf(dataDir), `${JSON.stringify(after)}\n`);
  return after;
}

/** Without the kinds of key that are not recorded. */
export function readKeysInUse(dataDir: string): AllKeysInUse {
  try {
    const read = JSON.parse(readFileSync(fileOf(dataDir), 'utf8')) as AllKeysInUse;
    const known = keyKinds.flatMap((kind) => {
      const one = read[kind];
      return one !== undefined && isKnown(one.current) && (one.next === undefined || isKnown(one.next))
        ? [[kind, one]]
        : [];
    });
    return Object.fromEntries(known);
  } catch {
    // The file is missing or incomplete: the next reload writes it again.
    return {};
  }
}

/** A key that a service used from this data directory, and whose file is gone. */
export interface MissingKey {
  kind: KeyKind | 'audit';
  file: string;
}

/**
 * The keys of `kinds` that were used and are missing, by the list next to the keys and by the database, since the list can be
 * lost with `keys/`. With `unchanged`, nothing is written next to the database, which is skipped where it cannot be read so.
 */
export function listMissingKeys(
  dataDir: string,
  kinds: readonly MissingKey['kind'][],
  { unchanged }: { unchanged: boolean },
): MissingKey[] {
  const gone = kinds
    .map((kind) => ({ kind, file: join(dataDir, serviceSecrets[kind].file) }))
    .filter(({ file }) => !existsSync(file));
  if (gone.length === 0) return [];
  const used = new Set<string>([
    ...Object.keys(readKeysInUse(dataDir)),
    ...kindsInDatabase(dataDir, unchanged),
  ]);
  return gone.filter(({ kind }) => used.has(kind));
}

function kindsInDatabase(dataDir: string, unchanged: boolean): string[] {
  const file = join(dataDir, 'andromeda.db');
  using view = existsSync(file) && files.isDatabase(file) ? files.view(file, { unchanged }) : undefined;
  if (!view) return [];
  const tables = view.tables();
  const kinds = tables.includes('server_keys')
    ? view.rows<{ kind: string }>('select distinct kind from server_keys').map(({ kind }) => kind)
    : [];
  const isSigned =
    tables.includes('audit_heads') && view.rows('select 1 from audit_heads limit 1').length > 0;
  return isSigned ? [...kinds, 'audit'] : kinds;
}

const uses: Record<MissingKey['kind'], string> = {
  host: 'everybody who connects would be told that the host key has changed',
  client: 'no login node would let the gateway in',
  issuer: 'everybody would have to sign in again',
  audit: 'the audit trail would go on under a signature that is not the noted one',
};

/** As a sentence that says what to do. */
export function missingKeyText({ kind, file }: MissingKey): string {
  return `The key ${file}, which the service used, is missing; with a new one, ${uses[kind]}. Bring the file back, or restore a backup (\`andromeda restore\`). To accept a new one: andromeda admin ${kind === 'host' ? 'host-key new' : `key new ${kind}`} --yes`;
}

function isKnown(key: unknown): boolean {
  const { id, since } = (key ?? {}) as { id?: unknown; since?: unknown };
  return typeof id === 'string' && typeof since === 'string' && !Number.isNaN(Date.parse(since));
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'keys', 'in-use.json');
}
