/** Staff keys: what operators of the installation may do. Customers hold none. */
import { invalidState } from '../error.ts';

/** Every staff key, with the keys it includes. */
const staffCatalog = [
  { key: 'staff.read', description: 'See everything in the installation', implies: [] },
  { key: 'staff.audit', description: 'Read and verify the audit trail', implies: [] },
  { key: 'staff.operate', description: 'Change everything', implies: ['staff.read', 'staff.audit'] },
] as const;

export type StaffKey = (typeof staffCatalog)[number]['key'];

/** Whether someone with these keys holds `key`, inclusions followed. */
export function holdsStaffKey(held: readonly string[], key: StaffKey): boolean {
  return staffCatalog.some(
    (known) =>
      held.includes(known.key) && (known.key === key || (known.implies as readonly string[]).includes(key)),
  );
}

/** Throws `invalid_state` when a change takes the last person away who can operate the installation. */
export function checkOperators({ before, after }: { before: boolean; after: boolean }): void {
  if (!before || after) return;
  throw invalidState('This is the last person with staff.operate. Give it to another first.');
}
