/** Which forwarding destinations are the login node itself. */
import { BlockList, isIP } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/**
 * Whether a forwarding destination, as the client sent it, is a loopback address of the login node in its one
 * canonical spelling ("SSH gateway behaviour", Supported). The name is judged as text because it is the login node
 * that resolves it: `127.1`, `2130706433` or `::ffff:127.0.0.1` may mean loopback there, or something else.
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || canonicalIpv4(host)?.[0] === 127;
}

function canonicalIpv4(host: string): number[] | undefined {
  const parts = host.split('.');
  const isOctet = (part: string) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255;
  return parts.length === 4 && parts.every(isOctet) ? parts.map(Number) : undefined;
}

/** The addresses that a login node tries for a destination, in order; none when it is not loopback. Any spelling counts. */
export function loopbackAddresses(host: string): string[] {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  if (name === 'localhost') return ['127.0.0.1', '::1'];
  const version = isIP(name);
  if (version === 0) return [];
  return loopback.check(name, version === 6 ? 'ipv6' : 'ipv4') ? [name] : [];
}
