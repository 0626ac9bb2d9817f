/** A small issuer, Platform and Business API in one server: device flow, refresh with rotation, revocation. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { entraRefusals } from '../support/code-issuer.ts';
import { json, type Seen, serve } from './harness.ts';

export interface EnvironmentState {
  url: string;
  /** What the token endpoint says to a poll: taken one by one, the last one for good. */
  polls: string[];
  interval: number;
  expiresIn: number;
  accessLifetime: number;
  /** How long a refresh takes, to make two of them overlap. */
  refreshDelayMs: number;
  /** Refresh tokens that are good for one use. */
  refreshTokens: Set<string>;
  refreshes: number;
  /** Answers to refreshes that do not arrive. */
  lostAnswers: number;
  reused: number;
  revoked: string[];
  revocation: 'works' | 'fails' | 'absent' | 'hangs';
  refusal: { status: number; error: string } | undefined;
  discovery: Record<string, unknown>;
  /** What the issuer's metadata say on top. */
  metadata: Record<string, unknown>;
  /** The resources that tokens may be asked for; undefined: it ignores the parameter (RFC 8707); or how it refuses any request with it. */
  resources: string[] | keyof typeof entraRefusals | undefined;
  me: { status: number; body: unknown };
  /** Access tokens that the APIs refuse. */
  refused: Set<string>;
  /** `sid` of the access tokens that it issues, which are JWTs then. */
  sid: string | undefined;
  /** How far its clock is ahead, in seconds. */
  skew: number;
  /** What its ID tokens say besides, or otherwise. */
  idClaims: { iss?: string; aud?: string | string[]; azp?: string };
  /** What the device authorization endpoint says on top. */
  device: Record<string, unknown>;
}

/** One for all of them: to make it takes longer than most tests. */
const keys = generateKeyPair('RS256');

export async function startEnvironment(t: TestContext, changes: Partial<EnvironmentState> = {}) {
  const { privateKey, publicKey } = await keys;
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' };
  const state: EnvironmentState = {
    url: '',
    polls: ['ok'],
    interval: 0.1,
    expiresIn: 600,
    accessLifetime: 3600,
    refreshDelayMs: 0,
    refreshTokens: new Set(),
    refreshes: 0,
    lostAnswers: 0,
    reused: 0,
    revoked: [],
    revocation: 'works',
    refusal: undefined,
    discovery: {},
    metadata: {},
    resources: undefined,
    me: { status: 200, body: { user: { display_name: 'Ada', primary_email: 'ada@physics.example' } } },
    refused: new Set(),
    sid: undefined,
    skew: 0,
    idClaims: {},
    device: {},
    ...changes,
  };

  const { url, requests, server } = await serve(t, (seen, response) => route(seen, response));
  state.url = url;

  async function route(seen: Seen, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(seen.body.toString('utf8'));
    switch (`${seen.method} ${seen.url}`) {
      case 'GET /.well-known/oauth-protected-resource':
        return json(response, 200, {
          resource: url,
          authorization_servers: [url],
          svc_audiences: ['andromeda'],
          svc_business_url: url,
          svc_cli_client_id: 'andromeda-cli',
          bearer_methods_supported: ['header'],
          ...state.discovery,
        });
      case 'GET /.well-known/openid-configuration':
        return json(response, 200, {
          issuer: url,
          token_endpoint: `${url}/token`,
          device_authorization_endpoint: `${url}/device_authorization`,
          jwks_uri: `${url}/jwks`,
          ...(state.revocation !== 'absent' && { revocation_endpoint: `${url}/revoke` }),
          ...state.metadata,
        });
      case 'GET /jwks':
        return json(response, 200, { keys: [jwk] });
      case 'POST /device_authorization':
        if (typeof state.resources === 'string' && form.has('resource'))
          return json(response, 400, entraRefusals[state.resources]);
        if (Array.isArray(state.resources) && !state.resources.includes(form.get('resource') ?? ''))
          return json(response, 400, { error: 'invalid_target' });
        return json(response, 200, {
          device_code: 'secret-device',
          user_code: 'BDWP-HQPK',
          verification_uri: `${url}/device`,
          verification_uri_complete: `${url}/device?user_code=BDWP-HQPK`,
          expires_in: state.expiresIn,
          interval: state.interval,
          ...state.device,
        });
      case 'POST /token':
        if (typeof state.resources === 'string' && form.has('resource'))
          return json(response, 400, entraRefusals[state.resources]);
        if (form.get('grant_type') === 'refresh_token') return refresh(form, response);
        return poll(response);
      case 'POST /revoke':
        if (state.revocation === 'hangs')
          return void response.on('close', () => state.revoked.push('given up'));
        if (state.revocation === 'fails') return json(response, 503, { error: 'server_error' });
        state.revoked.push(`${form.get('token_type_hint')} ${form.get('token')}`);
        return json(response, 200, {});
      case 'GET /me':
        if (state.refused.has(seen.headers.authorization ?? ''))
          return json(response, 401, { code: 'unauthorized', message: 'Not valid.', retryable: false });
        return json(response, state.me.status, state.me.body);
      default:
        return json(response, 404, { code: 'not_found', message: 'not found', retryable: false });
    }
  }

  async function poll(response: ServerResponse): Promise<void> {
    const answer = state.polls.length > 1 ? state.polls.shift() : state.polls[0];
    if (answer === 'hang up') return void response.destroy();
    if (answer !== 'ok') return json(response, 400, { error: answer });
    return issue(response);
  }

  async function refresh(form: URLSearchParams, response: ServerResponse): Promise<void> {
    const token = form.get('refresh_token') ?? '';
    if (state.refusal) return json(response, state.refusal.status, { error: state.refusal.error });
    if (state.lostAnswers > 0) {
      state.lostAnswers -= 1;
      return void response.destroy();
    }
    await new Promise((resolve) => setTimeout(resolve, state.refreshDelayMs));
    if (!state.refreshTokens.delete(token)) {
      state.reused += 1;
      return json(response, 400, { error: 'invalid_grant' });
    }
    state.refreshes += 1;
    return issue(response);
  }

  async function issue(response: ServerResponse): Promise<void> {
    const refreshToken = `secret-refresh-${randomUUID()}`;
    state.refreshTokens.add(refreshToken);
    const at = Math.floor(Date.now() / 1000) + state.skew;
    const { iss = url, aud = 'andromeda-cli', ...more } = state.idClaims;
    const sign = (claims: object) =>
      new SignJWT({ ...claims, ...more, nbf: at })
        .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
        .setIssuer(iss)
        .setAudience(aud)
        .setSubject('ada')
        .setIssuedAt(at)
        .setExpirationTime(at + 30)
        .sign(privateKey);
    const idToken = await sign({});
    json(response, 200, {
      access_token: state.sid ? await sign({ sid: state.sid }) : `secret-access-${randomUUID()}`,
      refresh_token: refreshToken,
      id_token: idToken,
      token_type: 'Bearer',
      expires_in: state.accessLifetime,
    });
  }

  return { url, state, requests, server };
}
