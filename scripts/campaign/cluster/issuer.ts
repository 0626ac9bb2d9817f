/** The servers' own issuer: its keys, which the lab has as well, so that most people need no sign-in for a token. */
import { importJWK, SignJWT } from 'jose';
import { makeIssuerKey, parseIssuerKeys } from '../../../src/api/identity/issuer/keys.ts';
import { writeKeyFiles } from '../../../src/store/data-dir/key-files.ts';

export interface LabIssuer {
  url: string;
  /** Puts its keys where a server finds them. */
  giveTo(dataDir: string): void;
  /** A token that it could have given, good for so many seconds. */
  token(name: string, seconds: number): Promise<string>;
}

export async function makeIssuer(url: string): Promise<LabIssuer> {
  const text = await makeIssuerKey();
  const [jwk] = parseIssuerKeys(text, 'it').signing;
  if (!jwk) throw new Error('it made no key');
  const key = await importJWK(jwk, 'RS256');
  const header = { alg: 'RS256', typ: 'at+jwt', ...(jwk.kid !== undefined && { kid: jwk.kid }) };
  return {
    url,
    giveTo: (dataDir) => writeKeyFiles(dataDir, 'issuer', { key: text }),
    token(name, seconds) {
      const at = Math.floor(Date.now() / 1000);
      const email = { email: `${name}@physics.example`, email_verified: true };
      return new SignJWT({ sub: `subject-${name}`, ...email, client_id: 'andromeda-cli' })
        .setProtectedHeader(header)
        .setIssuer(url)
        .setAudience('andromeda')
        .setIssuedAt(at)
        .setExpirationTime(at + seconds)
        .sign(key);
    },
  };
}
