/** Which keys the service has taken up, and since when: a file beside them, which a command on the host reads. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KeyKind, type KeysInUse, keyKinds, takenUp } from '../domain/key-rotation.ts';
import { writeWhole } from '../lib/whole-file.ts';

export type AllKeysInUse = Partial<Record<KeyKind, KeysInUse>>;

/** Notes what a service has taken up that has just started. Returns it, with since when. */
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

/** Nothing for a kind of which nothing is known. */
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
    // None, or half of one: then a reload notes it anew.
    return {};
  }
}

function isKnown(key: unknown): boolean {
  const { id, since } = (key ?? {}) as { id?: unknown; since?: unknown };
  return typeof id === 'string' && typeof since === 'string' && !Number.isNaN(Date.parse(since));
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'keys', 'in-use.json');
}
