/**
 * Certificates that the service obtains by itself from an authority (ACME, RFC 8555).
 *
 * Owns: the account at the authority, orders, the answers to its challenges, the certificate's file, and the time of
 * renewal. Must not: listen by itself (app does, with `tls` and `handler`), or keep the service from starting:
 * without a certificate only its HTTPS listeners take no connections, and with an old one everything continues.
 *
 * The flow: renewal.ts checks whether a certificate is due → order.ts orders one through `acme-client` → the
 * authority fetches the answers over plain HTTP → files.ts stores it → the listeners get it.
 */
import type { RequestListener } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { LiveTls } from '../../api/http/listen.ts';
import type { Logger } from '../../lib/log.ts';
import type { Rounds } from '../../lib/rounds.ts';
import { readCertificate } from './files.ts';
import { type Challenge, type OrderOptions, orderCertificate } from './order.ts';
import { type CertificateOfAll, type RenewalOptions, startRenewal, takeOrOrder } from './renewal.ts';

export interface AcmeOptions extends OrderOptions {
  dataDir: string;
  /** The origins of the HTTPS listeners, to which `handler` redirects. */
  origins: readonly string[];
  log: Logger;
  now(): number;
  /** The other servers behind the same names, where there are any. */
  others?: OtherServers | undefined;
  /** Milliseconds until the next attempt after so many failures in a row; left out: the usual back-off. */
  retryMs?: (failures: number) => number;
}

/** A challenge of the authority with its answer. */
export interface AnsweredChallenge extends Challenge {
  keyAuthorization: string;
}

/** Shared state of servers behind the same names: all have the same certificate, and the authority may connect to any of them. */
export interface OtherServers {
  certificate: CertificateOfAll;
  /** Has the other servers answer a challenge as well; resolves when they do. */
  announce(challenge: AnsweredChallenge): Promise<void>;
  /** Calls `listener` for each challenge of another server; returns a function that stops. */
  hear(listener: (challenge: AnsweredChallenge) => void): () => void;
}

export interface Acme {
  tls: LiveTls;
  /** Answers HTTP-01, and redirects all other requests to HTTPS. */
  handler: RequestListener;
  /** A sentence why the listeners accept no connections; undefined once there is a certificate. */
  readonly obstacle: string | undefined;
  /** Starts to obtain certificates that are due: the listeners must answer by now. */
  begin(): void;
  stop(): void;
}

export function createAcme(options: AcmeOptions): Acme {
  const { dataDir, hosts, log } = options;
  const tokens = new Map<string, string>();
  const tls = createTls(readCertificate(dataDir)?.pem);
  const isReady = () => tls.hasCertificate;
  function answer({ token, keyAuthorization }: AnsweredChallenge): () => void {
    tokens.set(token, keyAuthorization);
    return () => void tokens.delete(token);
  }
  const { others } = options;
  const stopHearing = others?.hear((challenge) => answerForOthers(answer, challenge, options));
  let renewal: Rounds | undefined;
  const renewalOptions: RenewalOptions = {
    ...options,
    order: (account, signal) => {
      const order = (ours: typeof account) =>
        orderCertificate(ours, {
          ...options,
          signal,
          async answer(challenge, keyAuthorization) {
            const undo = answer({ ...challenge, keyAuthorization });
            await others?.announce({ ...challenge, keyAuthorization });
            return undo;
          },
        });
      return others ? takeOrOrder(others.certificate, options, order, signal) : order(account);
    },
    onObtained: (pem) => tls.use(pem),
  };
  const obstacle = `There is no TLS certificate yet for ${hosts.join(', ')}: it is being obtained (acme in the log).`;
  if (!isReady())
    log.warn('acme.waiting', { hosts, message: `${obstacle} Nobody can connect over HTTPS until then.` });
  return {
    tls,
    handler: createResponder({ tokens, origins: options.origins, isReady }),
    get obstacle() {
      return isReady() ? undefined : obstacle;
    },
    begin() {
      if (renewal) renewal.wake();
      else renewal = startRenewal(renewalOptions);
    },
    stop() {
      stopHearing?.();
      void renewal?.stop();
    },
  };
}

const othersMs = 300_000;

/** Answers a challenge of another server's order for a while, for names that this server has as well. */
function answerForOthers(
  answer: (challenge: AnsweredChallenge) => () => void,
  challenge: AnsweredChallenge,
  { hosts }: Pick<AcmeOptions, 'hosts'>,
): void {
  if (hosts.includes(challenge.host)) setTimeout(answer(challenge), othersMs).unref();
}

/** The TLS context of the listeners: one certificate for all, replaced while they listen. `pem`: the chain and its key, once there is one. */
function createTls(pem: Buffer | undefined) {
  let current = pem;
  const servers = new Set<HttpsServer>();
  function give(server: HttpsServer): void {
    if (current) server.setSecureContext({ cert: current, key: current, minVersion: 'TLSv1.2' });
  }
  return {
    get hasCertificate() {
      return current !== undefined;
    },
    attach(server: HttpsServer) {
      servers.add(server);
      give(server);
      return () => void servers.delete(server);
    },
    /** Gives the listeners another certificate, for later connections. */
    use(next: Buffer) {
      current = next;
      for (const server of servers) give(server);
    },
  };
}

const prefix = '/.well-known/acme-challenge/';

/** The plain HTTP listener: it answers the authority's challenges (RFC 8555, section 8.3), and redirects other requests to HTTPS. */
function createResponder(options: {
  /** Key authorizations by token. */
  tokens: ReadonlyMap<string, string>;
  origins: readonly string[];
  /** True once HTTPS has a certificate. */
  isReady(): boolean;
}): RequestListener {
  const { tokens, origins, isReady } = options;
  return ({ method = '', url = '/', headers }, response) => {
    const plain = (status: number, text: string, more: Record<string, string> = {}) =>
      response
        .writeHead(status, {
          'Content-Type': 'text/plain; charset=utf-8',
          'Content-Length': Buffer.byteLength(text),
          ...more,
        })
        .end(method === 'HEAD' ? undefined : text);
    if (method !== 'GET' && method !== 'HEAD') return plain(405, 'Use HTTPS.\n', { Allow: 'GET, HEAD' });
    if (url.startsWith(prefix)) {
      const answer = tokens.get(url.slice(prefix.length));
      return answer === undefined ? plain(404, 'There is no such challenge.\n') : plain(200, answer);
    }
    const host = headers.host?.replace(/:\d{1,5}$/, '').toLowerCase();
    const origin = origins.find((one) => new URL(one).hostname === host);
    if (origin === undefined || !url.startsWith('/')) return plain(404, 'Nothing of that name is here.\n');
    if (!isReady())
      return plain(503, 'Not ready: the TLS certificate is being obtained.\n', { 'Retry-After': '10' });
    plain(308, 'Use HTTPS.\n', { Location: `${origin}${url}` });
  };
}
