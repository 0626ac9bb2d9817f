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
import { DomainError } from '../../domain/error.ts';
import { writeWhole } from '../../lib/whole-file.ts';

export interface IssuerKeys {
  /** Private keys; the first one signs. */
  signing: JWK[];
  /** 32 bytes, base64url. */
  cookie: string;
}

/** Reads the keys of a data directory, making them if there are none. Throws `invalid_state` on a broken file. */
export async function loadKeys(dataDir: string): Promise<IssuerKeys> {
  const file = join(dataDir, 'issuer-keys.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    const keys = await makeKeys();
    writeWhole(file, `${JSON.stringify(keys)}\n`);
    return keys;
  }
  await chmod(file, 0o600);
  return parse(text, file);
}

/** The public half, as the JWKS endpoint shows it. */
export function publicKeys(keys: IssuerKeys): { keys: JWK[] } {
  return {
    keys: keys.signing.map(({ kty, n, e, kid, alg, use }) => ({ kty, n, e, kid, alg, use }) as JWK),
  };
}

/** RSA and RS256, because that is what the Kubernetes API server accepts by default. */
async function makeKeys(): Promise<IssuerKeys> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const jwk: JWK = privateKey.export({ format: 'jwk' });
  const kid = await calculateJwkThumbprint(jwk);
  return {
    signing: [{ ...jwk, kid, alg: 'RS256', use: 'sig' }],
    cookie: randomBytes(32).toString('base64url'),
  };
}

function parse(text: string, file: string): IssuerKeys {
  try {
    const { signing, cookie } = JSON.parse(text) as Partial<IssuerKeys>;
    if (Array.isArray(signing) && signing[0]?.d && typeof cookie === 'string' && cookie.length >= 43) {
      return { signing, cookie };
    }
  } catch {
    // Told below, without the parser's message: it quotes the text, and the text is secret.
  }
  throw new DomainError(
    'invalid_state',
    `${file} is not a file of the embedded issuer's keys. Restore it from a backup, or remove it: new keys are made and everybody signs in again.`,
  );
}
