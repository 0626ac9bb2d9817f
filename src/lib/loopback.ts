/** Which hosts are the machine itself: of a listener, of an address, of a forwarding destination on the login node. */
import { isIPv4, isIPv6 } from 'node:net';

/**
 * Whether a host is `localhost` or a loopback address in any standard spelling ("SSH gateway behaviour", Supported). It is
 * judged as text, because another machine may resolve it: `127.1`, `2130706433` or `::ffff:127.0.0.1` may mean loopback there,
 * or something else.
 */
export function isLoopback(host: string): boolean {
  if (isIPv4(host)) return host.startsWith('127.');
  // The URL parser writes every address its shortest way. A zone (`::1%lo`) is no part of a spelling.
  if (isIPv6(host) && !host.includes('%')) return new URL(`http://[${host}]`).hostname === '[::1]';
  return host.toLowerCase() === 'localhost';
}

/** https, or http to this very machine: what goes there cannot be read or changed on the way. */
export function isSafeUrl(url: URL): boolean {
  return (
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, '')))
  );
}
