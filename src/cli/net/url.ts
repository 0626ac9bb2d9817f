/** Which addresses a token may be sent to. */

/** https, or http to this very machine. */
export function isSafeUrl(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

/** Whether a host name, as the URL parser normalises it, is this machine's loopback. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** An address in its one spelling, without the slash at its end; what is no address stays as it is. */
export function withoutSlash(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/\/+$/, '');
}

/**
 * `base` followed by `path`. Not `new URL(path, base)`: that would let `//elsewhere/` name another host.
 */
export function join(base: string, path: string): URL {
  return new URL(base.replace(/\/+$/, '') + path);
}
