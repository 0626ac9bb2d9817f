/** The TLS certificates of the listeners: their expiry, and whether each is usable. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { DomainError } from '../../domain/error.ts';
import type { Problem } from '../../domain/installation-state.ts';
import { acmeCertificateFile } from './acme.ts';
import type { Config } from './index.ts';
import { type HttpConfig, listHttpListeners } from './listeners.ts';

export type ListenerCertificate = ReturnType<typeof certificateOf>;

/**
 * Certificates of all listeners that have one; with `tls: acme` there is none at first. They are parsed again from
 * the configuration, or from the file that the service renews, so that they are current.
 */
export function listCertificates(config: Config): ListenerCertificate[] {
  return listHttpListeners(config).flatMap(([name, { tls, url }]) => {
    if (!tls) return [];
    if (!('acme' in tls)) return [certificateOf(`${name}.tls`, { ...tls, url }, false)];
    const pem = readRenewedCertificate(tls.certFile);
    return pem ? [certificateOf(`${name}.tls`, { ...tls, url, cert: pem, key: pem }, true)] : [];
  });
}

const dayMs = 86_400_000;

/** A present or approaching problem of a certificate; undefined where there is none. */
export function problemOf(
  one: ListenerCertificate,
  now: number,
): Pick<Problem, 'urgency' | 'message' | 'action'> | undefined {
  const { file, fault, beginsAt, endsAt, isRenewed } = one;
  const action = isRenewed
    ? 'The service could not renew it so far: acme.failed in its log says why.'
    : 'Renew it, and reload the service.';
  const day = (time: number) => new Date(time).toISOString().slice(0, 10);
  if (fault !== undefined) return { urgency: 'now', message: fault, action };
  if (endsAt <= now) return { urgency: 'now', message: `${file} ended on ${day(endsAt)}.`, action };
  if (beginsAt > now)
    return {
      urgency: 'now',
      message: `${file} is good from ${day(beginsAt)} on only.`,
      action: 'Is the clock of this machine right?',
    };
  // Renewal begins with a third of the life left. Where a quarter is left, renewal has failed for long.
  const lateMs = isRenewed ? (endsAt - beginsAt) / 4 : 30 * dayMs;
  if (endsAt - now >= lateMs) return undefined;
  return { urgency: 'soon', message: `${endText(one, now)}.`, action };
}

/** The expiry of a certificate that has not expired, as a sentence without its full stop. */
export function endText({ file, endsAt }: ListenerCertificate, now: number): string {
  const days = Math.floor((endsAt - now) / dayMs);
  const span = days < 1 ? 'less than a day' : days === 1 ? '1 day' : `${days} days`;
  return `${file} ends on ${new Date(endsAt).toISOString().slice(0, 10)}, in ${span}`;
}

/** A sentence why the service has not obtained a certificate yet; undefined where it has one, or obtains none. */
export function missingCertificate({ acme, dataDir }: Config): string | undefined {
  if (!acme || readRenewedCertificate(acmeCertificateFile(dataDir))) return undefined;
  const { host } = new URL(acme.directory);
  return `There is none yet for ${acme.hosts.join(', ')}. The service obtains it from ${host} when it runs.`;
}

/** The file with certificate and key that the service obtained; undefined where its content is unusable. */
function readRenewedCertificate(file: string): Buffer | undefined {
  try {
    const pem = readFileSync(file);
    const [certificate, key] = [readCertificate(pem), readKey(pem)];
    return certificate && key && certificate.checkPrivateKey(key) ? pem : undefined;
  } catch {
    // An unusable file is replaced: the service obtains the certificate again.
    return undefined;
  }
}

/** Throws `invalid_request` for the first certificate that its listener cannot use. An expired one is usable. */
export function requireCertificates(config: Config): void {
  const [broken] = listCertificates(config).filter(({ fault }) => fault !== undefined);
  if (broken?.fault !== undefined)
    throw new DomainError('invalid_request', `${broken.setting}: ${broken.fault}`);
}

function certificateOf(
  setting: string,
  tls: { cert: Buffer; key: Buffer; certFile: string; keyFile: string } & Pick<HttpConfig, 'url'>,
  isRenewed: boolean,
) {
  const { cert, key, certFile: file, keyFile, url } = tls;
  const ages = { beginsAt: NaN, endsAt: NaN };
  const unknown = { setting, file, keyFile, ...ages, otherHost: undefined, names: '', isRenewed };
  const certificate = readCertificate(cert);
  if (!certificate) return { ...unknown, fault: `${file} holds no certificate in PEM.` };
  const { hostname } = new URL(url);
  return {
    setting,
    file,
    keyFile,
    /** A sentence why the listener cannot use the certificate, which names the file; undefined where it can. */
    fault: faultOf(certificate, readKey(key), { file, keyFile }),
    beginsAt: Date.parse(certificate.validFrom),
    endsAt: Date.parse(certificate.validTo),
    /** The host of the listener's `url` where the certificate is not for it. */
    otherHost: isFor(certificate, hostname.replace(/^\[|\]$/g, '')) ? undefined : hostname,
    isRenewed,
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
    // The error's message may quote the key.
    return undefined;
  }
}

function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined;
}
