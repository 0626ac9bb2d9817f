/** Who may do what operators do. */
import { DomainError } from '../../domain/error.ts';
import { holdsStaffKey, type StaffKey } from '../../domain/staff.ts';
import type { Reader } from '../../store/index.ts';
import { listStaffKeys } from '../../store/users.ts';

/** Throws `forbidden` unless the person holds the staff key, by itself or included in another. */
export async function requireStaff(db: Reader, userId: string, key: StaffKey): Promise<void> {
  if (holdsStaffKey(await listStaffKeys(db, userId), key)) return;
  throw new DomainError('forbidden', `This is for operators of the installation who hold ${key}.`);
}
