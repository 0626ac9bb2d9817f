/** The file of the installation's key for the audit trail, which is made when it is missing. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type AuditKey, makeAuditKey, parseAuditKey } from '../../domain/audit/key.ts';
import { writeWhole } from '../../lib/whole-file.ts';

/** The key in `file` (PKCS #8 as PEM, mode 0600). Throws `invalid_state` with a sentence where the file holds no key. */
export function loadAuditKey(file: string): AuditKey {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeWhole(file, makeAuditKey());
  }
  return parseAuditKey(readText(file), file);
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
