/**
 * An authority for tests (ACME, RFC 8555): real TLS, real signatures and nonces, and challenges that it really asks for, at the
 * ports that a test says in the place of 80 and 443. It can be made to fail as authorities do.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, flattenedVerify, importJWK, type JWK } from 'jose';
import { createAuthority } from './certificate.ts';
import { listening } from './ports.ts';

export interface TestAcme extends AsyncDisposable {
  directory: string;
  /** Whom to trust as the directory, in PEM. */
  ca: string;
  /** Whom those trust who trust its certificates, in PEM. */
  root: string;
  /** What is asked for at, in the place of the ports 80 and 443. */
  ports: { http: number; tls: number };
  /** What is wrong with it. */
  fault: 'none' | 'silent' | 'busy' | 'rate limit' | 'refuses names';
  /** Every so many signed requests it says that the nonce is bad. */
  badNonceEvery: number;
  /** Requests so far, by what they were for. */
  requests: Map<string, number>;
  /** How long certificates are good. */
  days: number;
}

interface Authorization {
  host: string;
  status: 'pending' | 'valid' | 'invalid';
  token: string;
  error?: object;
}

interface Account {
  jwk: JWK;
  thumbprint: string;
}

interface Placed {
  account: Account;
  authorizations: number[];
  chain?: string;
}

class Problem extends Error {
  readonly type: string;
  readonly status: number;
  readonly headers: Record<string, string>;
  constructor(type: string, detail: string, status = 400, headers: Record<string, string> = {}) {
    super(detail);
    this.type = type;
    this.status = status;
    this.headers = headers;
  }
}

/** `place`: an empty directory of the test's own. */
export async function startTestAcme(place: string): Promise<TestAcme> {
  const authority = createAuthority();
  const openssl = (...args: string[]) => promisify(execFile)('openssl', args, { cwd: place });
  await openssl(
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
    ...['-keyout', 'root.key', '-out', 'root.pem', '-subj', '/CN=Test root', '-days', '3650'],
  );
  const root = (await openssl('x509', '-in', 'root.pem')).stdout;
  const accounts: Account[] = [];
  const authorizations: Authorization[] = [];
  const orders: Placed[] = [];
  const nonces = new Set<string>();
  let signed = 0;

  const server = createServer(authority.issue('server'), (request, response) => {
    answer(request, response).catch((error) => {
      if (error instanceof Problem) {
        const { type, status, message: detail, headers } = error;
        reply(response, status, { type: `urn:ietf:params:acme:error:${type}`, detail, status }, headers);
      } else reply(response, 500, { detail: String(error) });
    });
  });
  const base = `https://127.0.0.1:${await listening(server)}`;
  const acme: TestAcme = {
    directory: `${base}/directory`,
    ca: authority.ca,
    root,
    ports: { http: 0, tls: 0 },
    fault: 'none',
    badNonceEvery: 3,
    requests: new Map(),
    days: 90,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  function reply(response: ServerResponse, status: number, body: unknown, headers: object = {}): void {
    const nonce = randomBytes(16).toString('base64url');
    nonces.add(nonce);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const type = typeof body === 'string' ? 'application/pem-certificate-chain' : 'application/json';
    response.writeHead(status, { 'content-type': type, 'replay-nonce': nonce, ...headers }).end(text);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, what = '', id = ''] = (request.url ?? '').split('/');
    acme.requests.set(what, (acme.requests.get(what) ?? 0) + 1);
    if (acme.fault === 'silent') return;
    if (acme.fault === 'busy') return reply(response, 503, { detail: 'busy' }, { 'retry-after': '30' });
    const urls = ['new-nonce', 'new-account', 'new-order'].map((name) => `${base}/${name}`);
    const [newNonce, newAccount, newOrder] = urls;
    if (what === 'directory')
      return reply(response, 200, { newNonce, newAccount, newOrder, revokeCert: base, keyChange: base });
    if (what === 'new-nonce') return reply(response, 200, '');
    const { account, payload } = await read(request, what);
    const order = orders[Number(id)];
    const authorization = authorizations[Number(id)];
    if (what === 'new-account') {
      if (payload?.['termsOfServiceAgreed'] !== true) throw new Problem('userActionRequired', 'agree first');
      return reply(
        response,
        201,
        { status: 'valid' },
        { location: `${base}/account/${accounts.indexOf(account)}` },
      );
    }
    if (what === 'new-order') {
      if (acme.fault === 'rate limit')
        throw new Problem('rateLimited', 'too many certificates already issued', 429, {
          'retry-after': '3600',
        });
      const identifiers = payload?.['identifiers'] as { value: string }[];
      if (acme.fault === 'refuses names')
        throw new Problem('rejectedIdentifier', `${identifiers[0]?.value} is not for us`);
      const made = identifiers.map(
        ({ value: host }) =>
          authorizations.push({ host, status: 'pending', token: randomBytes(16).toString('base64url') }) - 1,
      );
      const number = orders.push({ account, authorizations: made }) - 1;
      return reply(response, 201, orderBody(number), { location: `${base}/order/${number}` });
    }
    if (what === 'order' && order) return reply(response, 200, orderBody(Number(id)));
    if (what === 'authorization' && authorization)
      return reply(response, 200, authorizationBody(authorization, Number(id)));
    if (what === 'challenge' && authorization) {
      await validate(authorization, account);
      return reply(response, 200, challengeBody(authorization, Number(id)));
    }
    if (what === 'finalize' && order) {
      if (statusOf(order) !== 'ready') throw new Problem('orderNotReady', 'not yet');
      order.chain = await issue(String(payload?.['csr']), Number(id));
      return reply(response, 200, orderBody(Number(id)));
    }
    if (what === 'certificate' && order?.chain) return reply(response, 200, order.chain);
    throw new Problem('malformed', `there is no ${request.url}`, 404);
  }

  /** A signed request, checked as RFC 8555 asks (section 6). */
  async function read(request: IncomingMessage, what: string) {
    let text = '';
    for await (const part of request.setEncoding('utf8')) text += part;
    const jws = JSON.parse(text);
    const header = JSON.parse(Buffer.from(jws.protected, 'base64url').toString());
    signed += 1;
    if (!nonces.delete(header.nonce) || signed % acme.badNonceEvery === 0)
      throw new Problem('badNonce', 'that nonce is not one');
    if (header.url !== `${base}${request.url}`) throw new Problem('unauthorized', 'signed for another URL');
    let account = accounts[Number(String(header.kid).split('/').at(-1))];
    if (header.jwk && what === 'new-account') {
      const thumbprint = await calculateJwkThumbprint(header.jwk);
      account = accounts.find((one) => one.thumbprint === thumbprint);
      if (!account) {
        account = { jwk: header.jwk, thumbprint };
        accounts.push(account);
      }
    }
    if (!account) throw new Problem('accountDoesNotExist', 'who are you?');
    const { payload } = await flattenedVerify(jws, await importJWK(account.jwk, header.alg));
    return {
      account,
      payload:
        payload.length === 0
          ? undefined
          : (JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>),
    };
  }

  function statusOf({ authorizations: own, chain }: Placed): string {
    const all = own.map((number) => authorizations[number]?.status);
    if (chain !== undefined) return 'valid';
    return all.includes('invalid') ? 'invalid' : all.includes('pending') ? 'pending' : 'ready';
  }

  function orderBody(number: number) {
    const order = orders[number] as Placed;
    return {
      status: statusOf(order),
      identifiers: order.authorizations.map((one) => ({ type: 'dns', value: authorizations[one]?.host })),
      authorizations: order.authorizations.map((one) => `${base}/authorization/${one}`),
      finalize: `${base}/finalize/${number}`,
      ...(order.chain !== undefined && { certificate: `${base}/certificate/${number}` }),
    };
  }

  function authorizationBody(one: Authorization, number: number) {
    const challenges = [challengeBody(one, number)];
    return { status: one.status, identifier: { type: 'dns', value: one.host }, challenges };
  }

  function challengeBody({ status, token, error }: Authorization, number: number) {
    return { type: 'http-01', url: `${base}/challenge/${number}`, token, status, ...(error && { error }) };
  }

  async function validate(one: Authorization, { thumbprint }: Account): Promise<void> {
    const expected = `${one.token}.${thumbprint}`;
    try {
      const found = await askHttp(one);
      if (found !== expected) throw new Error(`the answer was ${JSON.stringify(found).slice(0, 60)}`);
      one.status = 'valid';
    } catch (error) {
      one.status = 'invalid';
      one.error = {
        type: 'urn:ietf:params:acme:error:unauthorized',
        detail: `${one.host}: ${(error as Error).message}`,
      };
    }
  }

  async function askHttp({ token }: Authorization): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${acme.ports.http}/.well-known/acme-challenge/${token}`);
    return response.status === 200 ? response.text() : `status ${response.status}`;
  }

  async function issue(csr: string, number: number): Promise<string> {
    writeFileSync(join(place, `${number}.csr`), Buffer.from(csr, 'base64url'));
    const request = ['-req', '-inform', 'DER', '-in', `${number}.csr`, '-copy_extensions', 'copyall'];
    const signer = ['-CA', 'root.pem', '-CAkey', 'root.key', '-days', String(acme.days)];
    const { stdout } = await openssl('x509', ...request, ...signer);
    return `${stdout}${root}`;
  }
  return acme;
}
