/**
 * What the service keeps secret of its own, and all servers of one database must share: by the name in the database, and by
 * the file of the data directory, which is where it is on SQLite, and which wins where there is one.
 */
import type { KeyKind } from './key-rotation.ts';

export const serviceSecrets = {
  host: { name: 'gateway-host', file: 'keys/gateway_host_ed25519' },
  client: { name: 'gateway-client', file: 'keys/gateway_client_ed25519' },
  issuer: { name: 'issuer', file: 'issuer-keys.json' },
  audit: { name: 'audit', file: 'keys/audit_ed25519.pem' },
} as const satisfies Record<KeyKind, { name: string; file: string }>;

/** The file of a key and the one that takes its place, which is there while both hold. */
export function keySetFile(kind: KeyKind): string {
  return `keys/${kind}.next`;
}

/** What browsers that are on their way through a sign-in carry is encrypted with. A file has none: one server makes its own. */
export const consoleSecretName = 'console';

/** The account at the authority for certificates, and the certificate with its key. Each server has both in files as well. */
export const acmeSecrets = { account: 'acme-account', certificate: 'acme-certificate' } as const;

/** The keys that a cluster's hosts showed first, where the lab file pins none. */
export function knownHostsName(clusterId: string): string {
  return `known-hosts/${clusterId}`;
}

/** A secret of the database as the subject of a sentence. */
export function secretTitle(name: string): string {
  return `The secret ${name} in the database`;
}

/** What the servers say to each other when one was changed. */
export const secretsTopic = 'secrets';
