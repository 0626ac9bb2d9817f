/** The HTTP listeners: where each listens, what it is called from outside, and its TLS. */
import { isLoopback } from '../../lib/loopback.ts';
import { acmeCertificateFile } from './acme.ts';
import { type Address, hostInUrl, isWildcard, readAddress } from './addresses.ts';
import { invalid, readFile } from './named-files.ts';

/** The configuration file and how to find what it names; paths are relative to it. */
export interface Source {
  file: string;
  here(path: string): string;
  dataDir: string;
}

export const urlPattern = '^https?://[^/?#]+(/[^?#]*)?$';

export interface HttpConfig {
  listen: Address;
  /** What people and programs call it from outside, without a slash at the end. */
  url: string;
  tls: { cert: Buffer; key: Buffer; certFile: string; keyFile: string } | AcmeTls | undefined;
}

/** A certificate that the service obtains: what is in the file changes while it runs, and at first there is none. */
interface AcmeTls {
  acme: true;
  certFile: string;
  keyFile: string;
}

export interface RawHttp {
  listen?: string;
  url?: string;
  tls?: 'acme' | { cert: string; key: string };
  behindProxy?: boolean;
}

/** A listener, as JSON schema. */
export const httpSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    listen: { type: 'string', minLength: 1 },
    url: { type: 'string', pattern: urlPattern },
    tls: {
      type: ['object', 'string'],
      pattern: '^acme$',
      additionalProperties: false,
      required: ['cert', 'key'],
      properties: { cert: { type: 'string', minLength: 1 }, key: { type: 'string', minLength: 1 } },
    },
    behindProxy: { type: 'boolean' },
  },
};

export function readHttp(source: Source, name: string, given: RawHttp = {}, defaultPort: number): HttpConfig {
  const { file } = source;
  const listen = readAddress(file, `${name}.listen`, given.listen ?? `127.0.0.1:${defaultPort}`);
  const tls = readTls(source, name, given.tls);
  // Tokens and passwords cross these connections, so they cross no network in the clear.
  if (!tls && !given.behindProxy && !isLoopback(listen.host)) {
    throw invalid(
      file,
      `${name}.listen is ${listen.host}, which is not loopback, and there is no TLS. Give ${name}.tls, or set ${name}.behindProxy: true where a proxy in front does TLS.`,
    );
  }
  if (given.url === undefined && isWildcard(listen.host)) {
    throw invalid(
      file,
      `${name}.listen is ${listen.host}, which is every address of this machine. Give ${name}.url, the address that people call it by.`,
    );
  }
  const scheme = tls ? 'https' : 'http';
  const base = given.url ?? `${scheme}://${hostInUrl(listen.host)}:${listen.port}`;
  return { listen, url: base.replace(/\/+$/, ''), tls };
}

function readTls({ file, here, dataDir }: Source, name: string, given: RawHttp['tls']): HttpConfig['tls'] {
  if (given === undefined) return undefined;
  if (given === 'acme') {
    const certFile = acmeCertificateFile(dataDir);
    return { acme: true, certFile, keyFile: certFile };
  }
  const files = { certFile: here(given.cert), keyFile: here(given.key) };
  return {
    ...files,
    cert: readFile(file, `${name}.tls.cert`, files.certFile),
    key: readFile(file, `${name}.tls.key`, files.keyFile),
  };
}

export interface HttpListeners {
  platform: HttpConfig;
  business: HttpConfig;
  identity: { issuer: string | undefined; embedded: HttpConfig };
  metrics: HttpConfig | undefined;
  console: HttpConfig | undefined;
}

/** The HTTP listeners that are used, by the settings that name them. */
export function listHttpListeners({
  platform,
  business,
  identity,
  metrics,
  console,
}: HttpListeners): [string, HttpConfig][] {
  return [
    ['platform', platform],
    ['business', business],
    ...(identity.issuer === undefined ? ([['identity.embedded', identity.embedded]] as const) : []),
    ...(metrics ? ([['metrics', metrics]] as const) : []),
    ...(console ? ([['console', console]] as const) : []),
  ].map(([name, http]) => [name, http] as [string, HttpConfig]);
}
