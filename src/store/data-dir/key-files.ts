/**
 * The service's own keys as files of the data directory, each of mode 0600: the key, and during its rotation a second
 * file with the old and the new one. An interrupted write leaves one set or the other.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type AuditKey, auditKeysAt } from '../../domain/audit/audit.ts';
import { invalidState } from '../../domain/error.ts';
import {
  type HeldKeys,
  type KeyKind,
  type KeySet,
  keyKinds,
  keySetFile,
  keySetText,
  newKeyAdvice,
  readKeySet,
  serviceSecrets,
} from '../../domain/key-rotation.ts';
import { parseSshKey, writePublicPart } from '../../lib/ssh/public-key.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { files } from '../engine/engine.ts';
import type { Store } from '../engine/index.ts';
import { listRows, saveRow } from '../engine/rows.ts';

export function keyFileOf(dataDir: string, kind: KeyKind): string {
  return join(dataDir, serviceSecrets[kind].file);
}

/** Undefined where there is no file. A key that is not in the file with both was put there since, and holds alone. */
export function readKeyFiles(dataDir: string, kind: KeyKind): KeySet<string> | undefined {
  const file = keyFileOf(dataDir, kind);
  if (!existsSync(file)) return undefined;
  const key = readKey(file);
  const both = join(dataDir, keySetFile(kind));
  if (!existsSync(both)) return { key };
  const set = readKeySet(readKey(both), both);
  return [set.key, set.next?.key].includes(key) ? set : { key };
}

function readKey(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const advice =
      code === 'EISDIR'
        ? 'Move that directory away, and bring the file back.'
        : "It has to belong to the service's account, with mode 0600.";
    throw invalidState(`The key in ${file} cannot be read: ${message}. ${advice}`);
  }
}

export function writeKeyFiles(dataDir: string, kind: KeyKind, set: KeySet<string>): void {
  const file = keyFileOf(dataDir, kind);
  const both = join(dataDir, keySetFile(kind));
  for (const one of [file, both]) mkdirSync(dirname(one), { recursive: true, mode: 0o700 });
  if (set.next) writeWhole(both, keySetText(set));
  const ssh = kind === 'host' || kind === 'client' ? parseSshKey(set.key) : undefined;
  if (ssh) writePublicPart(file, ssh);
  writeWhole(file, set.key);
  if (!set.next) rmSync(both, { force: true });
}

/** The keys of the audit trail that hold now; undefined where there are no files of them. Throws `invalid_state`. */
export function readAuditKeys(dataDir: string): HeldKeys<AuditKey> | undefined {
  const set = readKeyFiles(dataDir, 'audit');
  return set && auditKeysAt(set, keyFileOf(dataDir, 'audit'), Date.now());
}

/** A key that a service used from this data directory, and whose file is gone. */
export interface MissingKey {
  kind: KeyKind;
  file: string;
}

const used = (kind: KeyKind) => `key ${kind}`;

/** Records by its ID which key is used, so that none is replaced silently. Resolves to whether it was another before. */
export async function noteKey(store: Store, kind: KeyKind, id: string): Promise<boolean> {
  const row = { name: used(kind), value: createHash('sha256').update(id).digest().readUIntBE(0, 6) };
  const before = (await notedIn(store)).get(row.name);
  if (before !== row.value) await store.write(({ db }) => saveRow(db, 'counters', ['name'], row));
  return before !== undefined && before !== row.value;
}

async function notedIn(store: Store): Promise<Map<string, number>> {
  const rows = await listRows(store.read, 'counters', {}, 'name');
  return new Map(rows.map(({ name, value }) => [name, value]));
}

function goneOf(dataDir: string, kinds: readonly KeyKind[]): MissingKey[] {
  const all = kinds.map((kind) => ({ kind, file: keyFileOf(dataDir, kind) }));
  return all.filter(({ file }) => !existsSync(file));
}

/**
 * The used keys of `kinds` whose files are missing, of an open store. Nothing but SQLite may open and close a database
 * file that this process has open: that would end its locks (https://sqlite.org/howtocorrupt.html).
 */
export async function findMissingKeys(store: Store, dataDir: string, kinds: readonly KeyKind[]) {
  const gone = goneOf(dataDir, kinds);
  const names = gone.length > 0 ? await notedIn(store) : new Map();
  return gone.filter(({ kind }) => names.has(used(kind)));
}

/**
 * The same for a database that this process does not have open. With `unchanged`, nothing is written next to the
 * database; one that cannot be read so is skipped.
 */
export function listMissingKeys(
  dataDir: string,
  kinds: readonly KeyKind[],
  { unchanged }: { unchanged: boolean },
): MissingKey[] {
  const gone = goneOf(dataDir, kinds);
  if (gone.length === 0) return [];
  const file = join(dataDir, 'andromeda.db');
  using view = existsSync(file) && files.isDatabase(file) ? files.view(file, { unchanged }) : undefined;
  if (!view?.tables().includes('counters')) return [];
  const names = new Set(
    [...view.rows<{ name: string }>('select name from counters')].map(({ name }) => name),
  );
  return gone.filter(({ kind }) => names.has(used(kind)));
}

const uses: Record<KeyKind, string> = {
  host: 'everybody who connects would be told that the host key has changed',
  client: 'no login node would let the gateway in',
  issuer: 'everybody would have to sign in again',
  audit: 'the audit trail would go on under a signature that is not the noted one',
};

export function missingKeyText({ kind, file }: MissingKey): string {
  return `The key ${file}, which the service used, is missing; with a new one, ${uses[kind]}. Bring the file back, or restore a backup (\`andromeda restore\`). ${newKeyAdvice(kind)}`;
}

/** The kinds of keys that an installation has; the issuer's only where no other issuer is configured. */
export function kindsOf(identity: { issuer?: string | undefined } | undefined): KeyKind[] {
  return keyKinds.filter((kind) => kind !== 'issuer' || identity?.issuer === undefined);
}
