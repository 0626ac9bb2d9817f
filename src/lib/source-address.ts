/** Source addresses of connections and requests, also behind trusted proxies, and detection of loopback hosts. */
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net';

/** Limit on entries in the configuration. */
export const mostTrustedProxies = 10_000;

/** The proxies whose headers about their clients are trusted. */
export interface TrustedProxies {
  /** True if a socket's address is a trusted proxy. */
  has(address: string): boolean;
}

/** Addresses and networks, such as `127.0.0.1`, `10.0.0.0/8`, `::1`. Throws a `RangeError` that names a wrong one. */
export function createTrustedProxies(entries: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', bits, ...rest] = entry.split('/');
    const version = address.includes('%') ? 0 : isIP(address);
    const most = version === 6 ? 128 : 32;
    const prefix = bits === undefined ? most : /^[1-9]\d{0,2}$/.test(bits) ? Number(bits) : Number.NaN;
    if (version === 0 || rest.length > 0 || !(prefix <= most)) {
      throw new RangeError(`"${entry}" is not an address or a network, such as 127.0.0.1, 10.0.0.0/8 or ::1`);
    }
    list.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4');
  }
  // Cheap, as it is called for every request.
  if (entries.length === 0) return { has: () => false };
  return {
    has(address) {
      const plain = plainAddress(address);
      const version = isIP(plain);
      return version !== 0 && list.check(plain, version === 6 ? 'ipv6' : 'ipv4');
    },
  };
}

/** An address in canonical spelling (RFC 5952), IPv4-mapped IPv6 as IPv4 (RFC 4291, 2.5.5.2), without zone. Other text stays. */
export function plainAddress(text: string): string {
  const address = text.replace(/%.*$/, '');
  if (isIP(address) !== 6) return address;
  return new SocketAddress({ address, family: 'ipv6' }).address.replace(/^::ffff:(?=\d+\.)/, '');
}

/** One key for the addresses of one attacker: an IPv4 address, or an IPv6 network of 56 bits, as providers give to one household. */
export function sourceNetwork(address: string): string {
  const plain = plainAddress(address);
  if (isIP(plain) !== 6) return plain;
  const [left = [], right = []] = plain.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  const [a, b, c, d = ''] = [...left, ...zeros, ...right];
  return `${a}:${b}:${c}:${(Number.parseInt(d, 16) & 0xff00).toString(16)}::/56`;
}

/**
 * The client address of an HTTP request: the socket's own or, where that is a trusted proxy, the one in
 * `X-Forwarded-For` or `Forwarded` (RFC 7239): its last entry that is no trusted proxy, since the client may have
 * invented any entry before that one. Where the header cannot be parsed, or the two contradict each other, it is the
 * proxy's own.
 */
export function clientAddress(
  proxies: TrustedProxies,
  request: { socket: { remoteAddress?: string | undefined }; headers: IncomingHttpHeaders },
): string {
  const { 'x-forwarded-for': list, forwarded } = request.headers;
  const socket = plainAddress(request.socket.remoteAddress ?? '');
  if ((list === undefined && forwarded === undefined) || !proxies.has(socket)) return socket;
  const answers = [
    list === undefined ? [] : clientOf(proxies, [list].flat().join(',').split(',')),
    forwarded === undefined ? [] : clientOf(proxies, forwardedFor(forwarded)),
  ].flat();
  const [first] = answers;
  // A proxy writes one of the two headers, and passes on whatever a client writes into the other.
  return first !== undefined && answers.every((one) => one === first) ? first : socket;
}

/** The last entry that is no trusted proxy; the first where all are; undefined where one on the way is no address. */
function clientOf(proxies: TrustedProxies, entries: readonly string[]): string | undefined {
  let client: string | undefined;
  for (const entry of entries.toReversed()) {
    client = addressOf(entry);
    if (client === undefined || !proxies.has(client)) return client;
  }
  return client;
}

/** Parses an address as proxies write it, with or without a port: `192.0.2.1:80`, `[2001:db8::1]:80`. */
function addressOf(entry: string): string | undefined {
  const [, bracketed, v4, plain] =
    /^(?:\[([^\]]+)\](?::[\w.-]+)?|(\d+\.\d+\.\d+\.\d+)(?::[\w.-]+)?|(.+))$/.exec(entry.trim()) ?? [];
  const address = plainAddress(bracketed ?? v4 ?? plain ?? '');
  return isIP(address) === 0 ? undefined : address;
}

/** The `for` parameter of each element; empty for an element without one, or for a malformed header. */
function forwardedFor(header: string): string[] {
  const parameter =
    /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~:[\]-]+)|"([^"\\]*)")[ \t]*)?(;|,|$)/y;
  const found: string[] = [''];
  while (parameter.lastIndex < header.length) {
    const [, name, token, quoted, end] = parameter.exec(header) ?? [];
    if (end === undefined) return [''];
    if (name?.toLowerCase() === 'for') found[found.length - 1] = token ?? quoted ?? '';
    if (end === ',') found.push('');
    if (end === '') break;
  }
  return found;
}

/**
 * True for `localhost` or a loopback address in any standard spelling ("SSH gateway behaviour", Supported). The text
 * is compared, because another machine may resolve it: `127.1`, `2130706433` or `::ffff:127.0.0.1` may mean loopback
 * there, or something else.
 */
export function isLoopback(host: string): boolean {
  if (isIPv4(host)) return host.startsWith('127.');
  // A zone (`::1%lo`) is not part of any standard spelling.
  if (isIPv6(host) && !host.includes('%')) return plainAddress(host) === '::1';
  return host.toLowerCase() === 'localhost';
}

/** True for https, or for http to this very machine: such traffic cannot be read or changed on the way. */
export function isSafeUrl(url: URL): boolean {
  const isOwn = isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  return url.protocol === 'https:' || (url.protocol === 'http:' && isOwn);
}
