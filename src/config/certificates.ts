/** The TLS certificates of the listeners: when each ends, and whether it can be used at all. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { DomainError } from '../domain/error.ts';
import type { Config, HttpConfig } from './index.ts';

/** The certificate of one listener. */
export interface ListenerCertificate {
  /** The setting that names it, such as `platform.tls`. */
  setting: string;
  file: string;
  keyFile: string;
  /** Why the listener cannot use it, as a sentence that names the file; undefined where it can. */
  fault: string | undefined;
  /** When it begins and ends, in milliseconds since 1970. Both are NaN where it cannot be read. */
  beginsAt: number;
  endsAt: number;
  /** The host of the listener's `url` where the certificate is not for it. */
  otherHost: string | undefined;
  /** The names it is for, as people read them. */
  names: string;
}

/** Of every listener that has TLS. They are read anew from what the configuration holds, so that ages are of now. */
export function listCertificates({ platform, business, identity, metrics }: Config): ListenerCertificate[] {
  const listeners: [string, HttpConfig | undefined][] = [
    ['platform', platform],
    ['business', business],
    ['identity.embedded', identity.issuer === undefined ? identity.embedded : undefined],
    ['metrics', metrics],
  ];
  return listeners.flatMap(([name, http]) => (http?.tls ? [certificateOf(`${name}.tls`, http)] : []));
}

/** Throws `invalid_request` for the first certificate that its listener cannot use. One that is expired can be used. */
export function requireCertificates(config: Config): void {
  const [broken] = listCertificates(config).filter(({ fault }) => fault !== undefined);
  if (broken?.fault !== undefined)
    throw new DomainError('invalid_request', `${broken.setting}: ${broken.fault}`);
}

function certificateOf(setting: string, { tls, url }: HttpConfig): ListenerCertificate {
  const { cert = Buffer.alloc(0), key = Buffer.alloc(0), certFile: file = '', keyFile = '' } = tls ?? {};
  const unknown = { setting, file, keyFile, beginsAt: NaN, endsAt: NaN, otherHost: undefined, names: '' };
  const certificate = readCertificate(cert);
  if (!certificate) return { ...unknown, fault: `${file} holds no certificate in PEM.` };
  const { hostname } = new URL(url);
  return {
    setting,
    file,
    keyFile,
    fault: faultOf(certificate, readKey(key), { file, keyFile }),
    beginsAt: Date.parse(certificate.validFrom),
    endsAt: Date.parse(certificate.validTo),
    otherHost: isFor(certificate, hostname.replace(/^\[|\]$/g, '')) ? undefined : hostname,
    names: (certificate.subjectAltName ?? certificate.subject).replace(/(?:DNS|IP Address):/g, ''),
  };
}

function faultOf(
  certificate: X509Certificate,
  key: KeyObject | undefined,
  { file, keyFile }: { file: string; keyFile: string },
): string | undefined {
  if (!key) return `${keyFile} holds no private key in PEM that can be read without a passphrase.`;
  if (certificate.checkPrivateKey(key)) return undefined;
  return `The key in ${keyFile} is not that of the first certificate in ${file}. The server's own certificate comes first, then the chain.`;
}

/** The first certificate in a file, which is the server's own. */
function readCertificate(pem: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function readKey(pem: Buffer): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    // What went wrong may quote the key.
    return undefined;
  }
}

function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined;
}
