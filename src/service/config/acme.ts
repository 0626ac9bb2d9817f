/** The `acme` section of the configuration: certificates that the service obtains by itself (ACME, RFC 8555). */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { readAddress } from './addresses.ts';
import { invalid, type NamedFiles } from './named-files.ts';
import { file, flag, pattern, section, text, type Value } from './schema.ts';

const letsEncrypt = 'https://acme-v02.api.letsencrypt.org/directory';

export const acmeSchema = section(
  {
    directory: pattern('^https://[^/?#]+(/.*)?$'),
    email: pattern('^[^\\s@,]+@[^\\s@,]+$'),
    agreeToTerms: flag,
    listen: text,
    ca: file,
    externalAccount: section({ kid: text, keyFile: file }, ['kid', 'keyFile']),
  },
  ['agreeToTerms'],
);

/** The path of the obtained certificate, with its key in the same file, so that both are replaced at once. */
export function acmeCertificateFile(dataDir: string): string {
  return join(dataDir, 'keys', 'acme_certificate.pem');
}

/** `listeners`: by their settings. Throws `invalid_request` with a sentence. */
export function readAcme(
  raw: Value<typeof acmeSchema> | undefined,
  listeners: readonly (readonly [setting: string, listener: { url: string; tls: object | undefined }])[],
  files: NamedFiles,
) {
  const urls = listeners.flatMap(([name, { tls, url }]) =>
    tls && 'acme' in tls ? [[name, url] as const] : [],
  );
  const [first] = urls;
  if (!raw) {
    if (first) throw invalid(`${first[0]}.tls is acme, and there is no section acme that says how.`);
    return undefined;
  }
  if (!first) throw invalid('acme: no listener has `tls: acme`.');
  if (!raw.agreeToTerms)
    throw invalid(
      'acme.agreeToTerms: the authority gives certificates only to those who agree to its terms.',
    );
  for (const [setting, url] of urls) {
    const { protocol, hostname } = new URL(url);
    if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || protocol !== 'https:')
      throw invalid(
        `${setting}.url is ${url}; with \`tls: acme\` it is https and has a name, which the certificate is for.`,
      );
  }
  const { externalAccount } = raw;
  return {
    directory: raw.directory ?? letsEncrypt,
    email: raw.email,
    listen: readAddress('acme.listen', raw.listen ?? '0.0.0.0:80'),
    hosts: [...new Set(urls.map(([, url]) => new URL(url).hostname))].sort(),
    authority: files.read('acme.ca', raw.ca)?.toString('utf8'),
    externalAccount: externalAccount && {
      kid: externalAccount.kid,
      hmacKey: files.readSecretText('acme.externalAccount.keyFile', externalAccount.keyFile),
    },
  };
}
