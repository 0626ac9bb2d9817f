/** An OpenID issuer for tests: real keys, real HTTP, tokens as a test wants them. */
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import type { TestCertificate } from './certificate.ts';
import { listening } from './ports.ts';

export interface TestIssuer extends AsyncDisposable {
  url: string;
  /** A signed access token; `sub` and `email` are made from the name unless given. */
  token(name: string, claims?: JWTPayload, lifetimeSeconds?: number): Promise<string>;
  /** What userinfo answers; a number is a status without an answer, undefined makes it fail. */
  userinfo: Record<string, unknown> | number | undefined;
  /** Signs with a key that the key set has only from now on. `drop`: it has no other any more. */
  rotate(options?: { drop: boolean }): Promise<void>;
  /** Requests so far, by path. */
  requests: Map<string, number>;
}

/** The paths of an issuer's metadata (OpenID Connect Discovery 1.0), and of itself. */
export interface Discovery extends Record<string, string> {
  issuer: string;
  jwks_uri: string;
  userinfo_endpoint: string;
}

const plain: Discovery = {
  issuer: '',
  jwks_uri: '/jwks',
  userinfo_endpoint: '/userinfo',
  device_authorization_endpoint: '/device',
};

export async function startTestIssuer(
  now: () => number,
  discovery = plain,
  tls?: TestCertificate,
): Promise<TestIssuer> {
  const keys: { kid: string; key: CryptoKey; jwk: object }[] = [];
  let made = 0;
  const requests = new Map<string, number>();
  const answer: RequestListener = (request, response) => {
    const path = request.url ?? '';
    requests.set(path, (requests.get(path) ?? 0) + 1);
    const bodies: Record<string, unknown> = {
      [`${discovery.issuer}/.well-known/openid-configuration`]: {
        ...Object.fromEntries(Object.entries(discovery).map(([name, path]) => [name, `${origin}${path}`])),
        scopes_supported: ['openid', 'email', 'offline_access'],
      },
      [discovery.jwks_uri]: { keys: keys.map(({ jwk }) => jwk) },
      [discovery.userinfo_endpoint]: issuer.userinfo,
    };
    const body = bodies[path];
    response.statusCode = typeof body === 'number' ? body : body === undefined ? 500 : 200;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(typeof body === 'object' ? body : {}));
  };
  const server = tls ? createTlsServer(tls, answer) : createServer(answer);
  const origin = `${tls ? 'https' : 'http'}://127.0.0.1:${await listening(server)}`;
  const url = `${origin}${discovery.issuer}`;
  const issuer: TestIssuer = {
    url,
    requests,
    userinfo: undefined,
    async rotate({ drop } = { drop: false }) {
      const kid = `key-${++made}`;
      if (drop) keys.length = 0;
      const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
      const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' };
      keys.push({ kid, key: privateKey, jwk });
    },
    async token(name, claims = {}, lifetimeSeconds = 600) {
      const signer = keys.at(-1);
      if (!signer) throw new Error('no key');
      const at = Math.floor(now() / 1000);
      return new SignJWT({
        sub: `subject-${name}`,
        email: `${name}@physics.example`,
        email_verified: true,
        aud: ['andromeda'],
        client_id: 'andromeda-cli',
        auth_time: at,
        iat: at,
        ...claims,
      })
        .setProtectedHeader({ alg: 'ES256', kid: signer.kid })
        .setIssuer((claims.iss as string | undefined) ?? url)
        .setExpirationTime(at + lifetimeSeconds)
        .sign(signer.key);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  await issuer.rotate();
  return issuer;
}
