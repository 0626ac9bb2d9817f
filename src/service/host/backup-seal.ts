/** What `restore`, `drill` and `doctor` say of a backup's manifest. */
import { constants, statSync } from 'node:fs';
import { trustedKeys } from '../../domain/audit/audit.ts';
import type { Seal } from '../../store/data-dir/backup-file.ts';
import { readAuditKeys } from '../../store/data-dir/key-files.ts';
import { verifyBackup } from '../../store/data-dir/restore.ts';
import { type Finding, ok, warn } from './checks/findings.ts';
import { isAllowed } from './files.ts';

const about = 'manifest';

/** The public keys of an installation for its audit trail, that in use first; none where none can be read. */
export function auditKeysOf(dataDir: string): string[] {
  try {
    const held = readAuditKeys(dataDir);
    return held ? trustedKeys(held) : [];
  } catch {
    return [];
  }
}

/** `known`: the keys that it should be signed by one of, where the installation has any. */
export function judgeSeal(name: string, seal: Seal, known: readonly string[]): Finding {
  const whole = `All ${seal.parts} parts of ${name} are as they were made`;
  if (seal.key === undefined)
    return warn(about, `${whole}, and nothing signed that: the installation had no key for its audit trail.`);
  const [key] = known;
  if (key === undefined)
    return ok(about, `${whole}, signed by ${seal.key}. Is that the key that you noted (admin audit key)?`);
  return known.includes(seal.key)
    ? ok(about, `${whole}, signed by the key of this installation.`)
    : warn(
        about,
        `${whole}, signed by ${seal.key}, and the key of this installation is ${key}. Was it made by another installation, or before the key was replaced?`,
      );
}

/** For `doctor`: whether a backup that lies here is as it was made. Throws where it is not. */
export function* checkBackupFile(file: string, dataDir: string): Generator<Finding> {
  const isHere = statSync(file, { throwIfNoEntry: false })?.isFile() && isAllowed(file, constants.R_OK);
  if (isHere) yield judgeSeal(file, verifyBackup(file).seal, auditKeysOf(dataDir));
}
