/** What `restore`, `drill` and `doctor` say of a backup's manifest. */
import { constants, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAuditKey } from '../../domain/audit/key.ts';
import { serviceSecrets } from '../../domain/service-secret.ts';
import type { Seal } from '../../store/data-dir/backup-file.ts';
import { verifyBackup } from '../../store/data-dir/restore.ts';
import { type Finding, ok, warn } from './checks/findings.ts';
import { isAllowed } from './files.ts';

const about = 'manifest';

/** The public key of an installation for its audit trail; undefined where it has none that can be read. */
export function auditKeyOf(dataDir: string): string | undefined {
  const file = join(dataDir, serviceSecrets.audit.file);
  try {
    return existsSync(file) ? parseAuditKey(readFileSync(file, 'utf8'), file).publicKey : undefined;
  } catch {
    return undefined;
  }
}

/** `known`: the key that it should be signed by, where the installation has one. */
export function judgeSeal(name: string, seal: Seal, known: string | undefined): Finding {
  const whole = `All ${seal.parts} parts of ${name} are as they were made`;
  if (seal.key === undefined)
    return warn(about, `${whole}, and nothing signed that: the installation had no key for its audit trail.`);
  if (known === undefined)
    return ok(about, `${whole}, signed by ${seal.key}. Is that the key that you noted (admin audit key)?`);
  return seal.key === known
    ? ok(about, `${whole}, signed by the key of this installation.`)
    : warn(
        about,
        `${whole}, signed by ${seal.key}, and the key of this installation is ${known}. Was it made by another installation, or before the key was replaced?`,
      );
}

/** For `doctor`: whether a backup that lies here is as it was made. Throws where it is not. */
export function* checkBackupFile(file: string, dataDir: string): Generator<Finding> {
  const isHere = statSync(file, { throwIfNoEntry: false })?.isFile() && isAllowed(file, constants.R_OK);
  if (isHere) yield judgeSeal(file, verifyBackup(file).seal, auditKeyOf(dataDir));
}
