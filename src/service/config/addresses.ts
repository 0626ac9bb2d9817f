/** Where a listener listens, as the configuration says it. */
import { DomainError } from '../../domain/error.ts';
import { createTrustedProxies } from '../../lib/source-address.ts';

export interface Address {
  host: string;
  port: number;
}

/** Throws `invalid_request` with a sentence for what is no host and port. `name`: of the setting. */
export function readAddress(file: string, name: string, value: string): Address {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(value) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(digits) > 65_535) {
    throw new DomainError(
      'invalid_request',
      `${file}: ${name} is "${value}"; it must be a host and a port, such as 127.0.0.1:8080.`,
    );
  }
  return { host, port: Number(digits) };
}

export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || /^[0:]+$/.test(host);
}

export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** Throws `invalid_request` where two settings name one address and port. */
export function refuseSharedPorts(file: string, listeners: readonly [string, Address][]): void {
  const taken = new Map<string, string>();
  for (const [name, { host, port }] of listeners) {
    if (port === 0) continue;
    const key = `${host}:${port}`;
    const other = taken.get(key);
    if (other !== undefined) {
      throw new DomainError(
        'invalid_request',
        `${file}: ${other}.listen and ${name}.listen are both ${key}; each needs its own port.`,
      );
    }
    taken.set(key, name);
  }
}

/** Throws `invalid_request` where one is neither an address nor a network. */
export function readProxies(file: string, entries: readonly string[]): readonly string[] {
  try {
    createTrustedProxies(entries);
  } catch (error) {
    throw new DomainError('invalid_request', `${file}: trustedProxies: ${(error as Error).message}.`);
  }
  return entries;
}
