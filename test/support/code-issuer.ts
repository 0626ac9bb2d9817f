/** An OpenID provider elsewhere, for a confidential client: authorization code with PKCE, refresh, signing out. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { listening } from './ports.ts';

export interface CodeIssuer extends AsyncDisposable {
  url: string;
  client: { id: string; secret: string };
  /** Who is signed in at the issuer, and so is sent back at once. */
  person: string;
  /** How far its clock is ahead, in seconds. */
  skew: number;
  /** What its tokens say besides, or otherwise. */
  claims: { access?: object; id?: object };
  /** What its userinfo endpoint answers, without a claim. */
  userinfoStatus: number;
  /** How long its access tokens are good, in seconds. */
  lifetime: number;
  /** What its metadata say besides, or otherwise. */
  metadata: object;
  /** How it refuses the parameter `resource`; undefined: it does not. */
  resourceRefusal: { error: string; error_description: string } | undefined;
  /** The queries that browsers came with, and the form of each request for tokens. */
  asked: URLSearchParams[];
  /** Whether it answers 503 to everything. */
  isDown: boolean;
  /** Grants that it gave tokens for, in order. */
  grants: string[];
  /** How many refresh tokens that it gave are good still. */
  countGood(): number;
  /** Forgets every refresh token. */
  forget(): void;
}

interface Code {
  person: string;
  challenge: string;
  nonce: string;
  redirect: string;
}

/** As public failure reports have Microsoft Entra ID: until 2025, and since. */
export const entraRefusals = {
  AADSTS901002: {
    error: 'invalid_request',
    error_description: "AADSTS901002: The 'resource' request parameter is not supported.",
  },
  AADSTS9010010: {
    error: 'invalid_target',
    error_description:
      "AADSTS9010010: The resource parameter provided in the request doesn't match with the requested scopes.",
  },
};

export async function startCodeIssuer(): Promise<CodeIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
  const codes = new Map<string, Code>();
  const refreshTokens = new Map<string, string>();
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.writeHead(500).end());
  });
  const url = `http://127.0.0.1:${await listening(server)}`;
  const issuer: CodeIssuer = {
    url,
    client: { id: 'andromeda-console', secret: 'the secret of the console' },
    person: 'bob',
    skew: 0,
    claims: {},
    userinfoStatus: 200,
    metadata: {},
    resourceRefusal: undefined,
    asked: [],
    lifetime: 600,
    isDown: false,
    grants: [],
    countGood: () => refreshTokens.size,
    forget: () => refreshTokens.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };

  function sign(claims: Record<string, unknown>): Promise<string> {
    const at = Math.floor(Date.now() / 1000) + issuer.skew;
    return new SignJWT({ ...claims, nbf: at })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer(String(claims['iss'] ?? url))
      .setIssuedAt(at)
      .setExpirationTime(at + issuer.lifetime)
      .sign(privateKey);
  }

  async function tokensOf(person: string, nonce?: string) {
    const refresh = randomBytes(16).toString('base64url');
    refreshTokens.set(refresh, person);
    const about = { sub: `elsewhere-${person}`, email: `${person}@physics.example`, email_verified: true };
    return {
      token_type: 'Bearer',
      expires_in: issuer.lifetime,
      access_token: await sign({
        ...about,
        aud: ['andromeda'],
        client_id: issuer.client.id,
        ...issuer.claims.access,
      }),
      refresh_token: refresh,
      id_token: await sign({ ...about, aud: issuer.client.id, ...(nonce && { nonce }), ...issuer.claims.id }),
    };
  }

  async function grant(form: URLSearchParams): Promise<object | undefined> {
    const kind = form.get('grant_type') ?? '';
    if (kind === 'refresh_token') {
      const person = refreshTokens.get(form.get('refresh_token') ?? '');
      refreshTokens.delete(form.get('refresh_token') ?? '');
      if (person === undefined) return undefined;
      issuer.grants.push(kind);
      // Not every provider gives an ID token again.
      const { id_token, ...tokens } = await tokensOf(person);
      return issuer.claims.id ? { ...tokens, id_token } : tokens;
    }
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const shown = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (!code || shown !== code.challenge || form.get('redirect_uri') !== code.redirect) return undefined;
    issuer.grants.push(kind);
    return tokensOf(code.person, code.nonce);
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = new URL(request.url ?? '/', url);
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (issuer.isDown) return void answer(503, {});
    if (at.pathname === '/.well-known/openid-configuration')
      return void answer(200, { ...metadataOf(url), ...issuer.metadata });
    if (at.pathname === '/userinfo') return void answer(issuer.userinfoStatus, {});
    if (at.pathname === '/jwks') return void answer(200, { keys: [jwk] });
    if (at.pathname === '/authorize') {
      const asked = at.searchParams;
      issuer.asked.push(asked);
      const code = randomBytes(16).toString('base64url');
      const redirect = asked.get('redirect_uri') ?? '';
      const state = asked.get('state') ?? '';
      if (issuer.resourceRefusal && asked.has('resource')) {
        const refusal = new URLSearchParams({ ...issuer.resourceRefusal, state, iss: url });
        return void response.writeHead(303, { location: `${redirect}?${refusal}` }).end();
      }
      const challenge = asked.get('code_challenge_method') === 'S256' ? asked.get('code_challenge') : null;
      codes.set(code, {
        person: issuer.person,
        challenge: challenge ?? 'none was given',
        nonce: asked.get('nonce') ?? '',
        redirect,
      });
      const back = new URL(redirect);
      back.search = `${new URLSearchParams({ code, state, iss: url })}`;
      return void response.writeHead(303, { location: back.href }).end();
    }
    if (at.pathname === '/end') {
      const back = at.searchParams.get('post_logout_redirect_uri') ?? '';
      const isOurs = at.searchParams.get('id_token_hint')?.split('.').length === 3;
      return void response.writeHead(isOurs ? 303 : 400, isOurs ? { location: back } : {}).end();
    }
    const form = new URLSearchParams(await textOf(request));
    const { id, secret } = issuer.client;
    if (at.pathname === '/token') issuer.asked.push(form);
    const isPost = form.get('client_id') === id && form.get('client_secret') === secret;
    if (!isPost && credentialsOf(request) !== `${id}:${secret}`)
      return void answer(401, { error: 'invalid_client' });
    if (at.pathname === '/revoke') {
      refreshTokens.delete(form.get('token') ?? '');
      return void answer(200, {});
    }
    const tokens = at.pathname === '/token' ? await grant(form) : undefined;
    answer(tokens ? 200 : 400, tokens ?? { error: 'invalid_grant' });
  }
  return issuer;
}

function metadataOf(url: string) {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    userinfo_endpoint: `${url}/userinfo`,
    revocation_endpoint: `${url}/revoke`,
    end_session_endpoint: `${url}/end`,
    jwks_uri: `${url}/jwks`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    id_token_signing_alg_values_supported: ['ES256'],
    authorization_response_iss_parameter_supported: true,
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request) text += part;
  return text;
}

/** "ID:secret"; both are encoded as forms are (RFC 6749, 2.3.1). */
function credentialsOf({ headers }: IncomingMessage): string {
  const parts = atob(headers.authorization?.replace('Basic ', '') ?? '').split(':');
  return parts.map((part) => decodeURIComponent(part.replaceAll('+', ' '))).join(':');
}
