/** People as claims (OpenID Connect Core 1.0, section 5.1), and when a sign-in of theirs is over. */
import type { Reader } from '../../store/index.ts';
import { findPasswordOfUser, type PasswordAccount } from '../../store/passwords.ts';

export interface Claims {
  sub: string;
  email: string;
  email_verified: true;
  name: string;
  preferred_username?: string;
  [claim: string]: string | boolean | undefined;
}

/**
 * The person who signed in at `authTime` (seconds), or undefined when that is over: no longer active, no password any
 * more, or a new password since. So a new password ends every session there was.
 */
export async function findSignedIn(
  reader: Reader,
  userId: string,
  authTime: number | undefined,
): Promise<PasswordAccount | undefined> {
  const account = await findPasswordOfUser(reader, userId);
  if (!account || authTime === undefined) return account;
  return Math.floor(Date.parse(account.passwordSetAt) / 1000) > authTime ? undefined : account;
}

/** Everything the issuer says about a person; which of it goes where is the scopes' matter. */
export function claimsOf(account: PasswordAccount): Claims {
  return {
    sub: account.userId,
    email: account.email,
    // The operator gives out addresses and passwords together, so an address here is one that somebody vouched for.
    email_verified: true,
    name: account.displayName,
    ...(account.preferredUsername === undefined ? {} : { preferred_username: account.preferredUsername }),
  };
}
