/** People: everybody with an account. The ID of a person is `userId` in all of the code, and `user_…` on the wire. */
import type { StaffKey } from './staff.ts';

export interface Person {
  id: string;
  /** `system`: the installation itself, which cannot sign in and owns what lab files create. */
  kind: 'person' | 'system';
  /** In lower case. */
  email: string;
  displayName: string;
  /** As the issuer said it at the first sign-in. */
  preferredUsername: string | null;
  loginShell: string;
  lifecycleState: 'active' | 'deactivated';
  /** What they may do as operators, in order. */
  staffKeys: StaffKey[];
  /** When what names them was replaced; null: it was not. RFC 3339. */
  erasedAt: string | null;
  /** When they last signed in, to the hour; null before the first time. RFC 3339. */
  signedInAt: string | null;
  /** Until when their access does not lapse without a sign-in. */
  signInExemptUntil: string | null;
  createdAt: string;
  updatedAt: string;
}
