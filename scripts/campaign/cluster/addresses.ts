/** Addresses of loopback in the place of those that docs/scale has, so that every part of the lab has its usual port. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Addresses {
  proxy: string;
  /** What people call each part by, at the proxy. */
  urls: Record<'platform' | 'business' | 'issuer' | 'console', string>;
  servers: readonly [string, string, string];
  databases: readonly [string, string];
  /** A text of docs/scale with these. */
  adapt(text: string): string;
}

/** As docs/scale has them; HAProxy's own ports for SSH and the console belong to root, and may be taken. */
export const ports = { platform: 8080, business: 8081, gateway: 2222, database: 5432 };
export const proxyPorts = { platform: 8443, business: 8444, issuer: 8445, console: 8446, ssh: 2022 };

/** Of a network of its own for each process, so that two labs do not meet. */
export function pickAddresses(): Addresses {
  const network = `127.${18 + (process.pid % 200)}.${Math.floor(process.pid / 200) % 250}`;
  const at = (host: number) => `${network}.${host}`;
  const url = (part: keyof typeof proxyPorts) => `http://${at(10)}:${proxyPorts[part]}`;
  return {
    proxy: at(10),
    urls: {
      ...{ platform: url('platform'), business: url('business') },
      ...{ issuer: url('issuer'), console: url('console') },
    },
    servers: [at(11), at(12), at(13)],
    databases: [at(21), at(22)],
    adapt: (text) => text.replaceAll('10.20.0.', `${network}.`),
  };
}

/** A file of docs/scale. */
export function readExample(name: string): string {
  return readFileSync(join(import.meta.dirname, '../../../docs/scale', name), 'utf8');
}
