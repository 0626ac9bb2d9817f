/** The servers' own issuer: its keys, which the lab has as well, so that most people need no sign-in for a token. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importJWK, SignJWT } from 'jose';
import { issuerKeysFile, loadKeys } from '../../../src/api/identity/issuer/keys.ts';

export interface LabIssuer {
  url: string;
  /** Puts its keys where a server finds them. */
  giveTo(dataDir: string): void;
  /** A token that it could have given, good for so many seconds. */
  token(name: string, seconds: number): Promise<string>;
}

/** `folder`: an empty one. */
export async function makeIssuer(url: string, folder: string): Promise<LabIssuer> {
  const [jwk] = (await loadKeys(folder)).signing;
  if (!jwk) throw new Error('it made no key');
  const key = await importJWK(jwk, 'RS256');
  const header = { alg: 'RS256', typ: 'at+jwt', ...(jwk.kid !== undefined && { kid: jwk.kid }) };
  return {
    url,
    giveTo(dataDir) {
      mkdirSync(dataDir, { recursive: true });
      writeFileSync(join(dataDir, issuerKeysFile), readFileSync(join(folder, issuerKeysFile)), {
        mode: 0o600,
      });
    },
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
