/**
 * Passkeys as a second factor (WebAuthn Level 3): what a browser is asked for, and whether what it answers is good. No attestation:
 * any authenticator will do. Whether it asks for a fingerprint is its owner's choice, since a password was proved before.
 */
import { isIP } from 'node:net';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { Passkey } from '../../../../store/people/second-factors.ts';

/** Who asks for passkeys: browsers bind them to a host's name. */
export interface RelyingParty {
  id: string;
  origin: string;
}

/** What a page hands to `navigator.credentials`, as JSON. */
export interface PasskeyRequest {
  method: 'create' | 'get';
  options: { challenge: string };
}

/** What a browser gave for a request with this challenge. */
export interface PasskeyAnswer {
  passkey: string;
  challenge: string;
}

/** Undefined for an issuer at an IP address, where browsers have no passkeys. */
export function relyingPartyOf({ hostname, origin }: URL): RelyingParty | undefined {
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? { id: hostname, origin } : undefined;
}

// The library takes half a second to load, which only those who have a passkey should wait for.
async function library() {
  const all = await import('@simplewebauthn/server');
  // It would fetch what a certificate in an attestation names, and attestations are of no interest.
  for (const identifier of ['apple', 'android-key', 'android-safetynet'] as const)
    all.SettingsService.setRootCertificates({ identifier, certificates: [] });
  return all;
}

/** What a browser makes another passkey for. */
export async function askForNew(
  { id: rpID }: RelyingParty,
  { userId, email, passkeys }: { userId: string; email: string; passkeys: readonly Passkey[] },
): Promise<PasskeyRequest> {
  const { generateRegistrationOptions } = await library();
  const options = await generateRegistrationOptions({
    ...{ rpName: 'Andromeda', rpID, userName: email, userID: Buffer.from(userId) },
    excludeCredentials: passkeys.map(({ id }) => ({ id })),
  });
  return { method: 'create', options };
}

export async function askForOne(
  { id: rpID }: RelyingParty,
  passkeys: readonly Passkey[],
): Promise<PasskeyRequest> {
  const { generateAuthenticationOptions } = await library();
  const allowCredentials = passkeys.map(({ id }) => ({ id }));
  return { method: 'get', options: await generateAuthenticationOptions({ rpID, allowCredentials }) };
}

/** The passkey that a browser made; undefined for anything else than that. */
export async function verifyNew(
  { id, origin }: RelyingParty,
  { passkey, challenge }: PasskeyAnswer,
  since: string,
): Promise<Passkey | undefined> {
  const { verifyRegistrationResponse } = await library();
  const { registrationInfo } = await orNothing(() =>
    verifyRegistrationResponse({
      response: JSON.parse(passkey) as RegistrationResponseJSON,
      ...{ expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: id },
      requireUserVerification: false,
    }),
  );
  if (!registrationInfo) return undefined;
  const { credential } = registrationInfo;
  const publicKey = Buffer.from(credential.publicKey).toString('base64url');
  return { id: credential.id, publicKey, counter: credential.counter, since };
}

/** Which of the passkeys a browser proved, with its counter as it is now; undefined for none. */
export async function verifyOne(
  { id: rpId, origin }: RelyingParty,
  { passkey, challenge }: PasskeyAnswer,
  passkeys: readonly Passkey[],
): Promise<Passkey | undefined> {
  const { verifyAuthenticationResponse } = await library();
  let used: Passkey | undefined;
  const { verified, authenticationInfo } = await orNothing(() => {
    const response = JSON.parse(passkey) as AuthenticationResponseJSON;
    used = passkeys.find(({ id }) => id === response.id);
    if (!used) throw new Error('another passkey');
    const { id, publicKey, counter } = used;
    return verifyAuthenticationResponse({
      response,
      ...{ expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: rpId },
      credential: { id, counter, publicKey: Buffer.from(publicKey, 'base64url') },
      requireUserVerification: false,
    });
  });
  return used && verified && authenticationInfo
    ? { ...used, counter: authenticationInfo.newCounter }
    : undefined;
}

/** The library throws for whatever it does not accept. */
async function orNothing<T extends object>(verify: () => Promise<T>): Promise<Partial<T>> {
  try {
    return await verify();
  } catch {
    return {};
  }
}
