/** The plain HTTP listener: it answers the authority's challenges (RFC 8555, section 8.3), and redirects the rest to HTTPS. */
import type { RequestListener } from 'node:http';

const prefix = '/.well-known/acme-challenge/';

export function createResponder(options: {
  /** Key authorizations by token. */
  tokens: ReadonlyMap<string, string>;
  origins: readonly string[];
  /** Whether HTTPS can be used. */
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
