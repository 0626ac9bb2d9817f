/** Verifies access tokens: JWTs of one issuer that contain every required audience (contract, "Authentication"; RFC 9068). */
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { DomainError, SignInRefusal, unauthorized } from '../../domain/error.ts';
import { storedText } from '../../domain/text.ts';
import { clockToleranceMs } from '../../lib/clock.ts';
import { shownClaim } from '../../lib/sign-in-refusal.ts';

export interface TokenRules {
  issuer: string;
  audiences: readonly string[];
  /** The required `typ` of the header (RFC 9068, 4); absent: any, since external issuers differ. */
  type?: string | undefined;
  /** Claims that contain a trusted address, or domains of the claim `email` that need no `email_verified`. */
  trustEmail?: readonly string[];
  /** A claim that marks service accounts, for issuers whose `sub` does not. */
  serviceAccountClaim?: { name: string; value: unknown } | undefined;
}

/** A token with a valid signature, issuer, audiences and times. Its person is not looked up yet. */
export interface VerifiedToken {
  issuer: string;
  subject: string;
  expiresAt: number;
  isServiceAccount: boolean;
  claims: JWTPayload;
  /** Whether the issuer's key set still contains the very key that verified the signature. Throws as `verifyToken` does. */
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

/** Verifies a token. Throws `unauthorized`, or `integration_unavailable` if the issuer's keys cannot be fetched. */
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
  // Any other value would be stored as some other text, possibly the same for many people.
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

/** The time of the person's sign-in, in ms since 1970, if the token has it (OpenID Connect Core 1.0, 2: auth_time). */
export function signedInAt({ auth_time: authTime }: JWTPayload, now: number): number | undefined {
  return typeof authTime === 'number' ? Math.min(authTime * 1000, now) : undefined;
}

const hourMs = 3_600_000;

/** The time of issue, which shows that the issuer still knew the person: to the hour, since each refresh has another. */
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
      // The tolerance for `exp` and `nbf` (RFC 7519, 4.1.4 and 4.1.5).
      clockTolerance: clockToleranceMs / 1000,
    });
    return {
      claims: payload,
      async isKeyInForce() {
        try {
          // A refetched key set has new key objects, even for keys that stayed.
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
    // The error that jose throws if the key set's response is not 200 with JSON.
    error.code === 'ERR_JOSE_GENERIC';
  if (isFetch) {
    const message = "The issuer's signing keys cannot be fetched at the moment.";
    return new DomainError('integration_unavailable', message, { cause: error });
  }
  return refused('The access token is not valid.');
}
