/** Which forwarding destinations are the login node itself. */
import { isIPv4, isIPv6 } from 'node:net';

/**
 * Whether a forwarding destination, as the client sent it, is `localhost` or a loopback address of the login node, in
 * any standard spelling ("SSH gateway behaviour", Supported). The name is judged as text because it is the login node
 * that resolves it: `127.1`, `2130706433` or `::ffff:127.0.0.1` may mean loopback there, or something else.
 */
export function isLoopback(host: string): boolean {
  if (isIPv4(host)) return host.startsWith('127.');
  // The URL parser writes every address its shortest way. A zone (`::1%lo`) is no part of a spelling.
  if (isIPv6(host) && !host.includes('%')) return new URL(`http://[${host}]`).hostname === '[::1]';
  return host.toLowerCase() === 'localhost';
}

/** The addresses that a login node tries for a destination, in order; none when it is not loopback. */
export function loopbackAddresses(host: string): string[] {
  if (host.toLowerCase() === 'localhost') return ['127.0.0.1', '::1'];
  return isLoopback(host) ? [host] : [];
}
