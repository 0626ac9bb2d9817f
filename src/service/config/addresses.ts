/** Addresses of listeners in the configuration. */
import { createTrustedProxies, plainAddress } from '../../lib/source-address.ts';
import { invalid } from './named-files.ts';

export interface Address {
  host: string;
  port: number;
}

/** Parses a host and a port. `name`: that of the setting. Throws `invalid_request` with a sentence. */
export function readAddress(name: string, value: string): Address {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(value) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(digits) > 65_535)
    throw invalid(`${name} is "${value}"; it must be a host and a port, such as 127.0.0.1:8080.`);
  return { host, port: Number(digits) };
}

export function isWildcard(host: string): boolean {
  return /^[0:.]+$/.test(plainAddress(host));
}

export function refuseSharedPorts(listeners: readonly [string, { listen: Address } | undefined][]): void {
  const taken = new Map<string, string>();
  for (const [name, listener] of listeners) {
    const { host, port } = listener?.listen ?? { host: '', port: 0 };
    if (port === 0) continue;
    const key = `${host}:${port}`;
    const other = taken.get(key);
    if (other !== undefined)
      throw invalid(`${other}.listen and ${name}.listen are both ${key}; each needs its own port.`);
    taken.set(key, name);
  }
}

export function readProxies(entries: readonly string[]): readonly string[] {
  try {
    createTrustedProxies(entries);
  } catch (error) {
    throw invalid(`trustedProxies: ${(error as Error).message}.`);
  }
  return entries;
}
