/** Access tokens: JWTs of one issuer that carry every audience (contract, "Authentication"; RFC 9068). */
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { DomainError, SignInRefusal, unauthorized } from '../../domain/error.ts';
import { storedText } from '../../domain/text.ts';
import { clockToleranceMs } from '../../lib/clock.ts';
import { shownClaim } from '../../lib/sign-in-refusal.ts';

export interface TokenRules {
  issuer: string;
  audiences: readonly string[];
  /** What the header's `typ` must be (RFC 9068, 4); any where left out: external issuers differ. */
  type?: string | undefined;
  /** Claims that hold an address, or domains of the claim `email`, that count without `email_verified`. */
  trustEmail?: readonly string[];
  /** A claim that marks service accounts at issuers where `sub` does not mark them. */
  serviceAccountClaim?: { name: string; value: unknown } | undefined;
}

/** A token whose signature, issuer, audiences and times are right. The person is not yet found. */
export interface VerifiedToken {
  issuer: string;
  subject: string;
  expiresAt: number;
  isServiceAccount: boolean;
  claims: JWTPayload;
  /** Whether the issuer still has the very key that the signature was verified with. Throws as `verifyToken` does. */
  isKeyInForce(): Promise<boolean>;
}

const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** Verifies a token. Throws `unauthorized`, or `integration_unavailable` when the issuer's keys cannot be had. */
export async function verifyToken(
  token: string,
  rules: TokenRules,
  keys: JWTVerifyGetKey,
  now: number,
): Promise<VerifiedToken> {
  const { claims, isKeyInForce } = await verifySignature(token, rules, keys, now);
  const audiences = [claims.aud ?? []].flat();
  if (!rules.audiences.every((audience) => audiences.includes(audience))) {
    throw new SignInRefusal(
      'audience',
      `The access token is meant for ${shownClaim(audiences)}, where this service wants ${shownClaim(rules.audiences)}.`,
    );
  }
  const { sub, exp = 0 } = claims;
  // Anything else would be stored as some text, and be the same for many people.
  if (typeof sub !== 'string' || sub === '' || storedText(sub) !== sub) {
    throw unauthorized('The access token does not say whose it is: its sub is not a text.');
  }
  const marked = rules.serviceAccountClaim;
  return {
    issuer: rules.issuer,
    subject: sub,
    expiresAt: exp * 1000,
    isServiceAccount:
      sub === claims['client_id'] ||
      sub === claims['azp'] ||
      (marked !== undefined && claims[marked.name] === marked.value),
    claims,
    isKeyInForce,
  };
}

/** When the person signed in, in ms since 1970, where the token says so (OpenID Connect Core 1.0, 2: auth_time). */
export function signedInAt({ auth_time: authTime }: JWTPayload, now: number): number | undefined {
  return typeof authTime === 'number' ? Math.min(authTime * 1000, now) : undefined;
}

const hourMs = 3_600_000;

/** When it was issued, which shows that the issuer knew the person still: to the hour, since each refresh gives another. */
export function issuedAt({ iat }: JWTPayload, now: number): number {
  const ms = Math.min(iat === undefined ? now : iat * 1000, now);
  return ms - (ms % hourMs);
}

async function verifySignature(
  token: string,
  rules: TokenRules,
  keys: JWTVerifyGetKey,
  now: number,
): Promise<Pick<VerifiedToken, 'claims' | 'isKeyInForce'>> {
  try {
    const { payload, protectedHeader, key } = await jwtVerify(token, keys, {
      issuer: rules.issuer,
      algorithms,
      ...(rules.type === undefined ? {} : { typ: rules.type }),
      requiredClaims: ['sub', 'exp'],
      currentDate: new Date(now),
      // `exp`, `nbf` (RFC 7519, 4.1.4 and 4.1.5).
      clockTolerance: clockToleranceMs / 1000,
    });
    return {
      claims: payload,
      async isKeyInForce() {
        try {
          // Another key set has other objects, even for keys that both have.
          return (await keys(protectedHeader, { payload: '', signature: '' })) === key;
        } catch (error) {
          if (error instanceof errors.JWKSMultipleMatchingKeys) return false;
          throw tokenError(error);
        }
      },
    };
  } catch (error) {
    throw tokenError(error);
  }
}

function tokenError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  const refused = (message: string) => new DomainError('unauthorized', message, { cause: error });
  if (error instanceof errors.JWTExpired) return refused('The access token has expired.');
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'iss') {
    return refused('The access token is from an issuer that is not accepted here.');
  }
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'nbf') {
    return new SignInRefusal(
      'clock',
      "The access token is not valid yet: this server's clock or the identity provider's is wrong. Tell your operator.",
      { cause: error },
    );
  }
  const isFetch =
    !(error instanceof errors.JOSEError) ||
    error instanceof errors.JWKSTimeout ||
    error instanceof errors.JWKSInvalid ||
    // What jose throws for a key set that is not answered with 200 and JSON.
    error.code === 'ERR_JOSE_GENERIC';
  if (isFetch) {
    const message = "The issuer's signing keys cannot be fetched at the moment.";
    return new DomainError('integration_unavailable', message, { cause: error });
  }
  return refused('The access token is not valid.');
}
