/** Whether the addresses that an installation listens on are free, or held by the installation itself. */
import { connect as connectTcp, createServer } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { missingCertificate } from '../config/certificates.ts';
import type { Address, Config, HttpConfig } from '../config/index.ts';
import { type Finding, ok, warn, wrong } from './checks/findings.ts';

/** What listens at an address, and how the service's own answers there. */
interface Listener {
  setting: string;
  at: Address;
  /** What to send, and what its answer contains. */
  probe: { send: string; answer: RegExp };
  /** Whether TLS is tried. HTTP is with and without: what runs may have been started before that setting changed. */
  tls: boolean[];
  /** Whether it has no certificate yet: then it does not answer. */
  isMute?: boolean;
}

const probeMs = 5_000;
const mostAnswer = 16_384;
/** Of the PROXY protocol, version 2, with the command LOCAL: a gateway that requires a header does not answer without it. */
const proxyHeader = '\r\n\r\n\0\r\nQUIT\n\x20\0\0\0';

/**
 * One finding for each address. They are asked together: what hangs is waited for once. `isHeld`: given by the service itself,
 * for what it listens on.
 */
export function checkPorts(config: Config, isHeld?: (at: Address) => boolean): Promise<Finding[]> {
  return Promise.all(listenersOf(config).map((listener) => checkPort(listener, isHeld)));
}

async function checkPort(listener: Listener, isHeld?: (at: Address) => boolean): Promise<Finding> {
  const { setting, at } = listener;
  const address = `${setting}.listen, ${at.host} port ${at.port}`;
  if (isHeld?.(at)) return ok('port', `${address}: held by this service.`);
  const code = at.port === 0 ? undefined : await errorOfListening(at);
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
    probe: {
      send: `GET ${path} HTTP/1.1\r\nHost: ${listen.host}\r\nConnection: close\r\n\r\n`,
      answer,
    },
    tls: [false, true],
  });
  const health = /\{"status":"ok"\}/;
  const send = gateway.proxyProtocol === 'required' ? proxyHeader : '';
  const ssh = { send, answer: /^SSH-2\.0-\S+ Andromeda\r?\n/ };
  const discovery = '/.well-known/openid-configuration';
  return [
    http('platform', platform, '/healthz', health),
    http('business', business, '/healthz', health),
    { setting: 'gateway', at: gateway.listen, probe: ssh, tls: [false] },
    ...(identity.issuer === undefined
      ? [http('identity.embedded', identity.embedded, discovery, /"device_authorization_endpoint"/)]
      : []),
    ...(acme?.listen
      ? [
          http(
            'acme',
            { listen: acme.listen, tls: undefined },
            '/.well-known/acme-challenge/check',
            /There is no such challenge/,
          ),
        ]
      : []),
    ...(console ? [http('console', console, '/healthz', health)] : []),
    ...(metrics ? [http('metrics', metrics, '/healthz', /Metrics are at GET \/metrics/)] : []),
  ];
}

/** Listens for an instant. Resolves to the error's code, such as `EADDRINUSE`; undefined where it went well. */
function errorOfListening({ host, port }: Address): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

async function isOurs({ at, probe, tls }: Listener): Promise<boolean> {
  const answers = await Promise.all(tls.map((one) => answerOf(at, probe, one)));
  return answers.some((text) => probe.answer.test(text));
}

/** The beginning of what a listener answers, as far as it comes within five seconds. */
function answerOf(
  { host, port }: Address,
  { send, answer }: Listener['probe'],
  tls: boolean,
): Promise<string> {
  const at = { host: /^[0.:]+$/.test(host) ? 'localhost' : host, port };
  return new Promise((resolve) => {
    let text = '';
    // Nothing secret is sent, and who it is makes no difference.
    const socket = tls ? connectTls({ ...at, rejectUnauthorized: false }) : connectTcp(at);
    const end = () => {
      clearTimeout(limit);
      socket.destroy();
      resolve(text);
    };
    const limit = setTimeout(end, probeMs);
    socket.on('data', (part: Buffer) => {
      text += part.toString('latin1');
      if (answer.test(text) || text.length > mostAnswer) end();
    });
    socket.on('error', end);
    socket.on('close', end);
    socket.write(send, 'latin1');
  });
}
