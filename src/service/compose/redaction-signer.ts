/** A part of the composition root: the installation's key for the audit trail, for copying it to another database. */
import { type AuditKey, parseAuditKey } from '../../domain/audit/key.ts';
import { serviceSecrets } from '../../domain/service-secret.ts';

/** What vouches for changed entries; undefined where the secrets have no key. Throws `invalid_state` for one that cannot be read. */
export function redactionSignerOf(
  secrets: ReadonlyMap<string, string>,
): AuditKey['signRedaction'] | undefined {
  const { name, file } = serviceSecrets.audit;
  const text = secrets.get(name);
  return text === undefined ? undefined : parseAuditKey(text, file).signRedaction;
}
