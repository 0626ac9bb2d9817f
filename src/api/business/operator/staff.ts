/** Who may do what operators do. */
import { forbidden } from '../../../domain/error.ts';
import type { Caller } from '../../../domain/operation.ts';
import { holdsStaffKey, type StaffKey } from '../../../domain/people/staff.ts';
import type { Reader, Tx } from '../../../store/engine/index.ts';
import { listStaffKeys } from '../../../store/people/people.ts';

/** Throws `forbidden` unless the person holds the staff key, by itself or included in another. */
export async function requireStaff(db: Reader, userId: string, key: StaffKey): Promise<void> {
  if (holdsStaffKey(await listStaffKeys(db, userId), key)) return;
  throw forbidden(`This is for operators of the installation who hold ${key}.`);
}

/** What authorizes the commands of operators. Throws `forbidden`. */
export function requireOperator(tx: Tx, { userId }: Caller): Promise<void> {
  return requireStaff(tx.db, userId, 'staff.operate');
}
