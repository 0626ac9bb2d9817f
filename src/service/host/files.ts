/** Checks that an installation's files exist, and that their modes keep others out. */
import { accessSync, constants, existsSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { allKeys, type KeyKind, keysAt, mapKeys } from '../../domain/key-rotation.ts';
import { formatBytes } from '../../domain/units.ts';
import { findVersionFault } from '../../store/data-dir/inspect.ts';
import {
  keyFileOf,
  kindsOf,
  listMissingKeys,
  missingKeyText,
  readKeyFiles,
} from '../../store/data-dir/key-files.ts';
import { requireKinds } from '../../store/data-dir/lock.ts';
import { files, isDatabaseError } from '../../store/engine/engine.ts';
import { describeText } from '../compose/service-keys.ts';
import { listCertificates } from '../config/certificates.ts';
import { type Config, listConfigFiles } from '../config/index.ts';
import { type Finding, ok, orWrong, warn, wrong } from './checks/findings.ts';
import { accountName } from './unit/account.ts';

/** The configuration and the files it names: other accounts of the host must not be able to change them, or read keys. */
export function* checkConfigFiles(file: string, config: Config): Generator<Finding> {
  const keys = new Set(listCertificates(config).map(({ keyFile }) => keyFile));
  for (const path of new Set(listConfigFiles(file))) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (!stats) {
      yield wrong('file', `${path} is not there.`);
      continue;
    }
    const { mode, uid } = stats;
    if (mode & 0o002) yield wrong('file', `${path} can be written by everybody. chmod o-w ${path}`);
    else if ((mode & 0o004) !== 0 && keys.has(path))
      yield wrong('file', `${path} is a key that everybody can read. chmod o-r ${path}`);
    else if (uid !== 0 && uid !== process.getuid?.())
      yield warn('file', `${path} belongs to ${accountName(uid)}, who can change it.`);
    else yield ok('file', `${path}, mode ${modeText(mode)}, of ${accountName(uid)}.`);
  }
}

export function* checkDataDir(dataDir: string): Generator<Finding> {
  const about = 'data';
  const stats = statSync(dataDir, { throwIfNoEntry: false });
  if (!stats) {
    const parent = dirname(dataDir);
    if (isAllowed(parent, constants.W_OK))
      yield ok(about, `${dataDir} is not there yet; the first start makes it.`);
    else
      yield wrong(
        about,
        `${dataDir} is not there, and cannot be made: ${parent} is missing, or not this account's to write.`,
      );
    return;
  }
  if (!stats.isDirectory()) return yield wrong(about, `${dataDir} is no directory.`);
  if (stats.uid !== process.getuid?.())
    return yield wrong(
      about,
      `${dataDir} belongs to ${accountName(stats.uid)}. Run this as root, or as that account.`,
    );
  if (stats.mode & 0o022) yield wrong(about, `${dataDir} can be written by others. chmod go-w ${dataDir}`);
  else if (!isAllowed(dataDir, constants.W_OK | constants.X_OK))
    yield wrong(
      about,
      `${dataDir} cannot be written: ${isReadOnly(dataDir) ? 'its file system is read-only' : 'its mode does not let its owner'}.`,
    );
  else yield ok(about, `${dataDir}, mode ${modeText(stats.mode)}, of ${accountName(stats.uid)}.`);
  for (const name of ['keys', 'issuer-keys.json', 'andromeda.db']) {
    const path = join(dataDir, name);
    const secret = statSync(path, { throwIfNoEntry: false });
    if (secret && secret.mode & 0o077) yield wrong(about, `${path} can be read by others. chmod go= ${path}`);
  }
  requireKinds(dataDir);
}

/** Checks the database's file; `doctor` checks its content. */
export function* checkDatabase(dataDir: string, { unchanged }: { unchanged: boolean }): Generator<Finding> {
  const about = 'database';
  const file = join(dataDir, 'andromeda.db');
  const stats = statSync(file, { throwIfNoEntry: false });
  if (!stats || stats.size === 0) {
    const state = stats ? 'is empty' : 'is not there';
    if (existsSync(join(dataDir, 'keys')))
      return yield wrong(
        about,
        `${file} ${state}, and there are keys of an installation beside it. Bring it back, or restore a backup (\`andromeda restore\`).`,
      );
    return yield ok(about, `${file} ${state} yet; the first start makes it.`);
  }
  if (!isAllowed(file, constants.R_OK | constants.W_OK))
    return yield wrong(about, `${file} cannot be written: ${whyNot(file, stats)}.`);
  if (!files.isDatabase(file))
    return yield wrong(about, `${file} is no database of SQLite. Restore a backup (\`andromeda restore\`).`);
  const what = `${file}, ${formatBytes(stats.size)}`;
  if (unchanged && files.isTooLarge(file))
    return yield warn(
      about,
      `${what}: not read, because it is too large for that while no service has it open. \`andromeda doctor\` reads it.`,
    );
  const fault = findVersionFault(file, unchanged);
  if (fault !== undefined) return yield wrong(about, fault);
  yield ok(about, unchanged ? `${what}. \`andromeda doctor\` looks into it.` : `${what}.`);
}

interface KeyConfig {
  identity?: Config['identity'] | undefined;
  database?: string | undefined;
  /** Writes no file next to the database. */
  unchanged: boolean;
}

/** Checks that the service's keys exist and are usable: without them it does not start. */
export async function* checkKeys(
  dataDir: string,
  { identity, database, unchanged }: KeyConfig,
): AsyncGenerator<Finding> {
  try {
    const missing = database === undefined ? listMissingKeys(dataDir, kindsOf(identity), { unchanged }) : [];
    for (const one of missing) yield wrong('key', missingKeyText(one));
  } catch (error) {
    // Another check reports faults of the database.
    if (!isDatabaseError(error)) throw error;
  }
  for (const kind of kindsOf(identity)) yield* orWrong('key', checkKey(dataDir, kind));
}

function* checkKey(dataDir: string, kind: KeyKind): Generator<Finding> {
  const set = readKeyFiles(dataDir, kind);
  const file = keyFileOf(dataDir, kind);
  const idOf = (text: string) => describeText(kind, text, file).id;
  if (set) yield ok('key', `${file}: ${allKeys(keysAt(mapKeys(set, idOf), Date.now())).join(', ')}.`);
}

/** `away`: the verdict where the copy cannot be written, which does not keep the service from starting. */
export function* checkAuditFile({ file, group }: Config['audit'], away: typeof wrong): Generator<Finding> {
  const about = 'audit';
  if (file === undefined) return;
  const stats = statSync(file, { throwIfNoEntry: false });
  const directory = dirname(file);
  const uid = process.geteuid?.();
  if (stats && !isAllowed(file, constants.R_OK | constants.W_OK))
    yield away(about, `audit.file: ${file} cannot be written: ${whyNot(file, stats)}.`);
  else if (!stats && !isAllowed(directory, constants.W_OK | constants.X_OK))
    yield away(
      about,
      `audit.file: ${file} cannot be made: ${directory} is missing, or not this account's to write.`,
    );
  else if (stats && uid !== 0 && stats.uid !== uid)
    yield away(
      about,
      `audit.file: ${file} belongs to ${accountName(stats.uid)}, and must be this account's, which sets who may read it.`,
    );
  else if (group !== undefined && uid !== 0 && !process.getgroups?.().includes(group))
    yield away(
      about,
      'audit.group: this account is not in that group. Put it there, and restart the service.',
    );
  else yield ok(about, `A copy of the trail to ${file}.`);
}

export function checkNamedFile(what: string, path: string): Finding {
  const about = 'cluster file';
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return wrong(about, `${what}: ${path} is not there, or out of this account's reach.`);
  if (!isAllowed(path, constants.R_OK))
    return wrong(about, `${what}: ${path} cannot be read: ${whyNot(path, stats)}.`);
  if (stats.mode & 0o007) return wrong(about, `${what}: ${path} can be read by everybody. chmod o= ${path}`);
  return ok(about, `${what}: ${path}.`);
}

export function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS';
  }
}

export function whyNot(path: string, { mode, uid }: Stats): string {
  if (isReadOnly(path)) return 'its file system is read-only';
  return `it belongs to ${accountName(uid)}, with mode ${modeText(mode)}`;
}

function modeText(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}
