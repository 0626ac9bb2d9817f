/** A person's claims (OpenID Connect Core 1.0, section 5.1), and the check that their sign-in is still valid. */
import { randomBytes } from 'node:crypto';
import type { JWTPayload } from 'jose';
import type { Reader } from '../../../store/engine/index.ts';
import { findPasswordOfUser, type PasswordAccount } from '../../../store/people/identities.ts';

export interface Claims {
  sub: string;
  email: string;
  email_verified: true;
  name: string;
  preferred_username?: string;
  [claim: string]: string | boolean | undefined;
}

/** The claim with the password's generation, in access tokens for the APIs. */
const claimName = 'password_generation';

/**
 * The person who signed in with the password of this generation; undefined if they are deactivated, or have no
 * password or a newer one, so that a new password ends all earlier sessions. Without `generation`: the person, if
 * they may sign in now.
 */
export async function findSignedIn(
  reader: Reader,
  userId: string,
  generation?: number,
): Promise<PasswordAccount | undefined> {
  const account = await findPasswordOfUser(reader, userId);
  if (!account || generation === undefined) return account;
  return account.passwordGeneration === generation ? account : undefined;
}

/** The ID of a new grant. It contains the password's generation, which so reaches every token of the sign-in. */
export function newGrantId({ passwordGeneration }: PasswordAccount): string {
  return `${passwordGeneration}.${randomBytes(24).toString('base64url')}`;
}

/** The password generation of a token's grant; 0 for a grant from before there were generations. */
export function generationOf(token: { grantId?: string | undefined } | object): number {
  const grantId = 'grantId' in token ? (token.grantId ?? '') : '';
  return Number(/^(\d+)\./.exec(grantId)?.[1] ?? 0);
}

export function claimOfGeneration(token: object): Record<string, number> {
  return { [claimName]: generationOf(token) };
}

export function generationClaim(claims: JWTPayload): number {
  const generation = claims[claimName];
  return typeof generation === 'number' ? generation : 0;
}

export function claimsOf(account: PasswordAccount): Claims {
  return {
    sub: account.userId,
    email: account.email,
    // The operator gives out addresses and passwords together, and so has verified the address.
    email_verified: true,
    name: account.displayName,
    ...(account.preferredUsername === null ? {} : { preferred_username: account.preferredUsername }),
  };
}
