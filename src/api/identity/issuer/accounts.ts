/** People as claims (OpenID Connect Core 1.0, section 5.1), and when a sign-in of theirs is over. */
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

/** Carries the password's generation, in access tokens for the APIs. */
const claimName = 'password_generation';

/**
 * The person who signed in with the password of this generation; undefined when they are no longer active, or have no
 * password or a newer one. So a new password ends all earlier sessions. Without `generation`: the person, if they may sign
 * in now.
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

/** The ID of a new grant. It names the generation of the password, which so reaches every token of the sign-in. */
export function newGrantId({ passwordGeneration }: PasswordAccount): string {
  return `${passwordGeneration}.${randomBytes(24).toString('base64url')}`;
}

/** The generation that a token's grant is from; 0 where it names none, as before there were any. */
export function generationOf(token: { grantId?: string | undefined } | object): number {
  const grantId = 'grantId' in token ? (token.grantId ?? '') : '';
  return Number(/^(\d+)\./.exec(grantId)?.[1] ?? 0);
}

/** What an access token carries of the generation of its grant, and how it is read again. */
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
    // The operator gives out addresses and passwords together, so an address here was verified by them.
    email_verified: true,
    name: account.displayName,
    ...(account.preferredUsername === null ? {} : { preferred_username: account.preferredUsername }),
  };
}
