/**
 * The issuer's secrets: the key that signs tokens and the one that protects cookies and forms. Made on first start,
 * kept in one file of mode 0600 in the data directory; losing it signs everybody out, nothing worse.
 */
import { generateKeyPair, randomBytes } from 'node:crypto';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JWK } from 'jose';
import { calculateJwkThumbprint } from 'jose';
import { invalidState } from '../../../domain/error.ts';
import type { KeyStep } from '../../../domain/key-rotation.ts';
import { writeWhole } from '../../../lib/whole-file.ts';

/** In the data directory. */
export const issuerKeysFile = 'issuer-keys.json';

const minute = 60;

/** Good for a few minutes only: nothing but time ends an access token (RFC 9068 has no revocation). */
export const accessTokenSeconds = 10 * minute;
/** A Kubernetes API server does not ask whether an ID token is still valid. */
export const idTokenSeconds = 10 * minute;

export interface IssuerKeys {
  /** Private keys; the first one signs. */
  signing: JWK[];
  /** Private as well: the one that is to sign next is published before it does, and the one before for as long as its tokens. */
  next?: JWK;
  previous?: JWK;
  /** 32 bytes, base64url. */
  cookie: string;
}

/** Reads the keys of a data directory, making them if there are none. Throws `invalid_state` on a broken file. */
export async function loadKeys(dataDir: string): Promise<IssuerKeys> {
  const file = fileOf(dataDir);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    const keys = await makeKeys();
    writeKeys(dataDir, keys);
    return keys;
  }
  await chmod(file, 0o600);
  return parseKeys(text, file);
}

/** Takes a step with the keys of a data directory. */
export async function stepSigningKeyFile(step: KeyStep, dataDir: string): Promise<void> {
  const keys = await loadKeys(dataDir);
  const stepped = stepSigningKeys(step, keys, step === 'announce' ? await makeSigningKey() : undefined);
  if (stepped !== keys) writeKeys(dataDir, stepped);
}

/** What a step makes of the keys: the same ones where it has nothing to do. `made`: the key that is announced. */
export function stepSigningKeys(step: KeyStep, keys: IssuerKeys, made: JWK | undefined): IssuerKeys {
  const { signing, next, previous, cookie } = keys;
  const [current, ...others] = signing;
  switch (step) {
    case 'announce':
      return made ? { ...keys, next: made } : keys;
    case 'switch':
      return next && current ? { signing: [next, ...others], previous: current, cookie } : keys;
    case 'back':
      return previous && current ? { signing: [previous, ...others], next: current, cookie } : keys;
    case 'withdraw':
      return { signing, ...(previous && { previous }), cookie };
    case 'retire':
      return { signing, ...(next && { next }), cookie };
  }
}

/** By their `kid`. */
export function signingKeyIds({ signing, next, previous }: IssuerKeys) {
  return { current: signing[0]?.kid ?? '', next: next?.kid, previous: previous?.kid };
}

/** Every key that tokens may be signed with, for the library: it signs with the first one that will do. */
export function allSigningKeys({ signing, next, previous }: IssuerKeys): JWK[] {
  return [...signing, ...(next ? [next] : []), ...(previous ? [previous] : [])];
}

function fileOf(dataDir: string): string {
  return join(dataDir, issuerKeysFile);
}

function writeKeys(dataDir: string, keys: IssuerKeys): void {
  writeWhole(fileOf(dataDir), keysText(keys));
}

/** Keys as they are kept. */
export function keysText(keys: IssuerKeys): string {
  return `${JSON.stringify(keys)}\n`;
}

/** The public half, as the JWKS endpoint shows it. */
export function publicKeys(keys: IssuerKeys): { keys: JWK[] } {
  return {
    keys: allSigningKeys(keys).map(({ kty, n, e, kid, alg, use }) => ({ kty, n, e, kid, alg, use }) as JWK),
  };
}

export async function makeKeys(): Promise<IssuerKeys> {
  return { signing: [await makeSigningKey()], cookie: randomBytes(32).toString('base64url') };
}

/** RSA and RS256, because that is what the Kubernetes API server accepts by default. */
export async function makeSigningKey(): Promise<JWK> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const jwk: JWK = privateKey.export({ format: 'jwk' });
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: 'RS256', use: 'sig' };
}

/** Throws `invalid_state` with a sentence that begins with `name`. It quotes nothing of the text. */
export function parseKeys(text: string, name: string): IssuerKeys {
  try {
    const { signing, next, previous, cookie } = JSON.parse(text) as Partial<IssuerKeys>;
    if (Array.isArray(signing) && signing[0]?.d && typeof cookie === 'string' && cookie.length >= 43) {
      return { signing, ...(next?.d && { next }), ...(previous?.d && { previous }), cookie };
    }
  } catch {
    // Thrown below without the parser's message, which quotes the secret text.
  }
  throw invalidState(
    `${name} is not a file of the embedded issuer's keys. Restore it from a backup, or remove it: new keys are made and everybody signs in again.`,
  );
}
