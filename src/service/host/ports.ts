/** Checks that an installation's addresses are free, or in use by the installation itself. */
import { createServer } from 'node:net';
import { missingCertificate } from '../config/certificates.ts';
import type { Address, Config, HttpConfig } from '../config/index.ts';
import { askListener, getRequest } from './ask-service.ts';
import { type Finding, ok, warn, wrong } from './checks/findings.ts';

interface Listener {
  setting: string;
  at: Address;
  probe: { send: string; answer: RegExp };
  /**
   * TLS settings to try, in this order. HTTP has both, the configured one first: the service logs the other, and may
   * have been started before that setting changed.
   */
  tls: boolean[];
  /** True while it has no certificate, so that it does not answer. */
  isMute?: boolean;
}

const probeMs = 5_000;
/** A header of the PROXY protocol, version 2, with the command LOCAL: a gateway that requires one does not answer without it. */
const proxyHeader = '\r\n\r\n\0\r\nQUIT\n\x20\0\0\0';

interface ServiceState {
  /** Passed by the service itself, for its own listeners. */
  isHeld?: (at: Address) => boolean;
  /** True if a service runs with this configuration, and should listen. */
  isRunning?: boolean;
}

/** One finding for each address; all are probed in parallel. */
export function checkPorts(config: Config, known: ServiceState = {}): Promise<Finding[]> {
  return Promise.all(listenersOf(config).map((listener) => checkPort(listener, known)));
}

async function checkPort(listener: Listener, { isHeld, isRunning }: ServiceState): Promise<Finding> {
  const { setting, at } = listener;
  const address = `${setting}.listen, ${at.host} port ${at.port}`;
  if (isHeld?.(at)) return ok('port', `${address}: held by this service.`);
  const code = at.port === 0 ? undefined : await errorOfListening(at);
  if (code === undefined && isRunning)
    return wrong(
      'port',
      `${address}: nothing listens there, and a service runs. Did the settings change since it started? Reload it, and look at its log.`,
    );
  if (code === undefined) return ok('port', `${address}: free.`);
  if (code === 'EACCES')
    return (isHeld ? wrong : warn)(
      'port',
      `${address}: this account may not listen below 1024 by itself. The unit of \`andromeda service install\` gives it the right.`,
    );
  if (code === 'EADDRNOTAVAIL') return wrong('port', `${address}: this machine has no such address.`);
  if (code !== 'EADDRINUSE') return wrong('port', `${address}: cannot be listened on (${code}).`);
  if (listener.isMute)
    return warn('port', `${address}: in use, by Andromeda or another: without a certificate nobody answers.`);
  if (await isOurs(listener)) return ok('port', `${address}: held by Andromeda, which runs.`);
  if (isRunning) return wrong('port', `${address}: what listens there does not answer as Andromeda does.`);
  return wrong(
    'port',
    `${address}: in use by another program. Stop that one, or give another port (\`ss -ltnp\` says which it is).`,
  );
}

function listenersOf(config: Config): Listener[] {
  const { platform, business, gateway, identity, metrics, console, acme } = config;
  const isMissing = missingCertificate(config) !== undefined;
  const http = (
    setting: string,
    { listen, tls }: Pick<HttpConfig, 'listen' | 'tls'>,
    path: string,
    answer: RegExp,
  ): Listener => ({
    setting,
    isMute: isMissing && tls !== undefined && 'acme' in tls,
    at: listen,
    probe: { send: getRequest(path, listen), answer },
    tls: [tls !== undefined, tls === undefined],
  });
  const health = /\{"status":"ok"\}/;
  const send = gateway.proxyProtocol === 'required' ? proxyHeader : '';
  const ssh = { send, answer: /^SSH-2\.0-\S+ Andromeda\r?\n/ };
  const discovery = '/.well-known/openid-configuration';
  const challenge = '/.well-known/acme-challenge/check';
  const embedded = identity.issuer === undefined && identity.embedded;
  const answers = acme && { listen: acme.listen, tls: undefined };
  return [
    http('platform', platform, '/healthz', health),
    http('business', business, '/healthz', health),
    { setting: 'gateway', at: gateway.listen, probe: ssh, tls: [false] },
    embedded && http('identity.embedded', embedded, discovery, /"device_authorization_endpoint"/),
    answers && http('acme', answers, challenge, /There is no such challenge/),
    console && http('console', console, '/healthz', health),
    metrics && http('metrics', metrics, '/healthz', /Metrics are at GET \/metrics/),
  ].filter((one) => typeof one === 'object');
}

/** Listens for an instant. Resolves to the error's code, such as `EADDRINUSE`; undefined where it succeeded. */
function errorOfListening({ host, port }: Address): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

async function isOurs({ at, probe, tls }: Listener): Promise<boolean> {
  const { send, answer: enough } = probe;
  for (const one of tls)
    if (enough.test(await askListener(at, { send, tls: one, enough, limitMs: probeMs }))) return true;
  return false;
}
