/** What our pages and the library see of a request. */
import type { IncomingMessage } from 'node:http';
import { clientAddress, type TrustedProxies } from '../../../lib/source-address.ts';

/** No form of ours and no token request is near this. */
export const mostBodyBytes = 16 * 1024;

const addresses = new WeakMap<IncomingMessage, string>();

/** The address that a request came from, as it was when `pinToIssuer` saw it. */
export function remoteAddress(req: IncomingMessage): string {
  return addresses.get(req) ?? '';
}

/**
 * Makes a request look as if it came straight to the issuer's own URL, whatever the caller or a proxy wrote: the
 * library builds every address that it hands out from these headers.
 */
export function pinToIssuer(req: IncomingMessage, issuer: URL, proxies: TrustedProxies): void {
  addresses.set(req, clientAddress(proxies, req));
  req.headers.host = issuer.host;
  delete req.headers['x-forwarded-for'];
  delete req.headers.forwarded;
  delete req.headers['x-forwarded-host'];
  // Read only when the library is configured for a proxy that does TLS (`provider.proxy`).
  req.headers['x-forwarded-proto'] = issuer.protocol.replace(':', '');
}

/** The fields of a posted form, or undefined when it is no form or larger than `mostBodyBytes`. */
export async function readForm(req: IncomingMessage): Promise<URLSearchParams | undefined> {
  const type = req.headers['content-type'] ?? '';
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req) {
    size += chunk.length;
    if (size > mostBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}
