/**
 * The issuer's secrets: the key that signs tokens and the key that protects cookies and forms. Their loss signs
 * everyone out, nothing worse.
 */
import { generateKeyPair, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import type { JWK } from 'jose';
import { calculateJwkThumbprint } from 'jose';
import { invalidState } from '../../../domain/error.ts';
import { allKeys, type HeldKeys, spoiltKeyAdvice } from '../../../domain/key-rotation.ts';

const minute = 60;

/** Short, since an access token cannot be revoked and only expires (RFC 9068). */
export const accessTokenSeconds = 10 * minute;
/** Short, since a Kubernetes API server does not check whether an ID token was revoked. */
export const idTokenSeconds = 10 * minute;

export interface IssuerKeys {
  signing: JWK[];
  /** 32 bytes, base64url. */
  cookie: string;
}

/** The used key signs; the other valid keys are published too. */
export function issuerKeysOf(held: HeldKeys<IssuerKeys>): IssuerKeys {
  return { ...held.used, signing: allKeys(held).flatMap(({ signing }) => signing) };
}

export function publicKeys({ signing }: IssuerKeys): { keys: JWK[] } {
  return { keys: signing.map(({ kty, n, e, kid, alg, use }) => ({ kty, n, e, kid, alg, use }) as JWK) };
}

/** A new key in its stored form. It keeps the former cookie key, so that sign-ins continue. */
export async function makeIssuerKey(former?: IssuerKeys): Promise<string> {
  const cookie = former?.cookie ?? randomBytes(32).toString('base64url');
  return `${JSON.stringify({ signing: [await makeSigningKey()], cookie } satisfies IssuerKeys)}\n`;
}

/** RSA and RS256, since the Kubernetes API server accepts those by default. */
async function makeSigningKey(): Promise<JWK> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const jwk: JWK = privateKey.export({ format: 'jwk' });
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: 'RS256', use: 'sig' };
}

/** Throws `invalid_state` with a sentence that begins with `name`. It quotes no part of the secret text. */
export function parseIssuerKeys(text: string, name: string): IssuerKeys {
  try {
    const { signing, cookie } = JSON.parse(text) as Partial<IssuerKeys>;
    if (Array.isArray(signing) && signing[0]?.d && typeof cookie === 'string' && cookie.length >= 43)
      return { signing, cookie };
  } catch {
    // Thrown below without the parser's message, which quotes the secret text.
  }
  throw invalidState(
    `The key in ${name} cannot be used: it is not a file of the embedded issuer's keys. ${spoiltKeyAdvice('issuer')}`,
  );
}
