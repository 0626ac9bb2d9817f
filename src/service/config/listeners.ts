/** The HTTP listeners: their addresses, their public URLs, and their TLS. */
import { isLoopback } from '../../lib/source-address.ts';
import { acmeCertificateFile } from './acme.ts';
import { type Address, isWildcard, readAddress } from './addresses.ts';
import { invalid, type NamedFiles } from './named-files.ts';
import { file, flag, pattern, type Schema, section, text, type Value } from './schema.ts';

export interface HttpConfig {
  listen: Address;
  /** The URL by which people and programs reach it, without a slash at the end. */
  url: string;
  tls: { cert: Buffer; key: Buffer; certFile: string; keyFile: string } | AcmeTls | undefined;
}

/** A certificate that the service obtains: the file changes at run time, and does not exist at first. */
interface AcmeTls {
  acme: true;
  certFile: string;
  keyFile: string;
}

export const urlSchema = pattern('^https?://[^/?#]+(/[^?#]*)?$');
const tlsSchema: Schema<'acme' | { cert: string; key: string }> = {
  ...section({ cert: file, key: file }, ['cert', 'key']),
  type: ['object', 'string'],
  pattern: '^acme$',
};

export const httpSchema = section({ listen: text, url: urlSchema, tls: tlsSchema, behindProxy: flag });

export function readHttp(
  name: string,
  given: Value<typeof httpSchema> = {},
  { defaultPort, files, dataDir }: { defaultPort: number; files: NamedFiles; dataDir: string },
): HttpConfig {
  const listen = readAddress(`${name}.listen`, given.listen ?? `127.0.0.1:${defaultPort}`);
  const tls = given.tls && readTls(`${name}.tls`, given.tls, { files, dataDir });
  // Tokens and passwords cross these connections, so they must not cross a network unencrypted.
  if (!tls && !given.behindProxy && !isLoopback(listen.host))
    throw invalid(
      `${name}.listen is ${listen.host}, which is not loopback, and there is no TLS. Give ${name}.tls, or set ${name}.behindProxy: true where a proxy in front does TLS.`,
    );
  if (given.url === undefined && isWildcard(listen.host))
    throw invalid(
      `${name}.listen is ${listen.host}, which is every address of this machine. Give ${name}.url, the address that people call it by.`,
    );
  const scheme = tls ? 'https' : 'http';
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  const base = given.url ?? `${scheme}://${host}:${listen.port}`;
  return { listen, url: base.replace(/\/+$/, ''), tls };
}

function readTls(
  name: string,
  given: Value<typeof tlsSchema>,
  { files, dataDir }: { files: NamedFiles; dataDir: string },
): HttpConfig['tls'] {
  if (given === 'acme') {
    const certFile = acmeCertificateFile(dataDir);
    return { acme: true, certFile, keyFile: certFile };
  }
  return {
    certFile: files.at(given.cert),
    keyFile: files.at(given.key),
    cert: files.read(`${name}.cert`, given.cert),
    key: files.read(`${name}.key`, given.key),
  };
}

export interface HttpListeners {
  platform: HttpConfig;
  business: HttpConfig;
  identity: { issuer: string | undefined; embedded: HttpConfig };
  metrics: HttpConfig | undefined;
  console: HttpConfig | undefined;
}

export function listHttpListeners(config: HttpListeners): [setting: string, HttpConfig][] {
  const { platform, business, identity, metrics, console } = config;
  const all: [string, HttpConfig | undefined][] = [
    ['platform', platform],
    ['business', business],
    ['identity.embedded', identity.issuer === undefined ? identity.embedded : undefined],
    ['metrics', metrics],
    ['console', console],
  ];
  return all.flatMap(([name, http]) => (http ? [[name, http]] : []));
}
