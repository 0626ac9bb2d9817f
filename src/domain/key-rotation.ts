/**
 * Rotation of the service's keys. A new key is stored as `next` with a rotation period in which both keys are valid: in the
 * first half the old key is used while clients and hosts learn the new one, in the second half the new key is used; then
 * the old key is dropped. The schedule depends on the time alone, so every server follows it, even after an outage.
 */
import { invalidState } from './error.ts';

export const keyKinds = ['host', 'client', 'issuer', 'audit'] as const;
export type KeyKind = (typeof keyKinds)[number];

export function spoiltKeyAdvice(kind: KeyKind): string {
  return `Restore it from a backup. To have a new one, move it away first. ${newKeyAdvice(kind)}`;
}

export function newKeyAdvice(kind: KeyKind): string {
  return `To accept a new one: andromeda admin key new ${kind} --yes`;
}

/** The days for which the old key stays valid, unless the command says otherwise. */
export const usualKeepDays = 30;
const dayMs = 86_400_000;

/** A key and its successor during a rotation. Times in RFC 3339. */
export interface KeySet<Key> {
  key: Key;
  next?: { key: Key; from: string; until: string };
}

export interface HeldKeys<Key> {
  used: Key;
  /** The successor, which is used from `from` on. */
  next?: Key;
  former?: Key;
  from?: string;
  /** When the former key, or the used one if `next` is set, stops being valid. */
  until?: string;
}

export function keysAt<Key>({ key, next }: KeySet<Key>, now: number): HeldKeys<Key> {
  if (!next) return { used: key };
  const { from, until } = next;
  if (now >= Date.parse(until)) return { used: next.key };
  return now >= Date.parse(from)
    ? { used: next.key, former: key, until }
    : { used: key, next: next.key, from, until };
}

/** Every valid key, the used one first. */
export function allKeys<Key>({ used, next, former }: HeldKeys<Key>): [Key, ...Key[]] {
  return [used, ...[next, former].filter((key) => key !== undefined)];
}

/** The set without an expired key; the same object if none expired. */
export function settled<Key>(set: KeySet<Key>, now: number): KeySet<Key> {
  return set.next && now >= Date.parse(set.next.until) ? { key: set.next.key } : set;
}

/** The set with a successor added. With 0 days, the successor replaces the key at once, independent of any server's clock. */
export function withNext<Key>({ key }: KeySet<Key>, next: Key, keepDays: number, now: number): KeySet<Key> {
  if (keepDays === 0) return { key: next };
  const at = (days: number) => new Date(now + days * dayMs).toISOString();
  return { key, next: { key: next, from: at(keepDays / 2), until: at(keepDays) } };
}

export function mapKeys<From, To>({ key, next }: KeySet<From>, map: (key: From) => To): KeySet<To> {
  return { key: map(key), ...(next && { next: { ...next, key: map(next.key) } }) };
}

export function mapHeld<From, To>({ used, next, former, ...times }: HeldKeys<From>, map: (key: From) => To) {
  const held: HeldKeys<To> = { used: map(used), ...times };
  if (next !== undefined) held.next = map(next);
  if (former !== undefined) held.former = map(former);
  return held;
}

export function keySetText(set: KeySet<string>): string {
  return JSON.stringify(set);
}

/** Throws `invalid_state` with a sentence that begins with `title`. It quotes no part of the secret text. */
export function readKeySet(text: string, title: string): KeySet<string> {
  try {
    const { key, next } = JSON.parse(text) as Partial<KeySet<string>>;
    if (typeof key === 'string' && (next === undefined || isNext(next)))
      return { key, ...(next && { next }) };
  } catch {
    // Thrown below, without the parser's message, which quotes the secret text.
  }
  throw invalidState(`${title} holds no key that can be used. Restore it from a backup.`);
}

function isNext(next: Partial<NonNullable<KeySet<string>['next']>>): boolean {
  const { key, from = '', until = '' } = next;
  return typeof key === 'string' && !Number.isNaN(Date.parse(from)) && !Number.isNaN(Date.parse(until));
}

/**
 * Secrets of the service that all servers of one database share: the name in the database, and the file in the data
 * directory. SQLite installations use the file; a database without the secret is initialized from it.
 */
export const serviceSecrets = {
  host: { name: 'gateway-host', file: 'keys/gateway_host_ed25519' },
  client: { name: 'gateway-client', file: 'keys/gateway_client_ed25519' },
  issuer: { name: 'issuer', file: 'issuer-keys.json' },
  audit: { name: 'audit', file: 'keys/audit_ed25519.pem' },
} as const satisfies Record<KeyKind, { name: string; file: string }>;

/** The file of a key and its successor; it exists while both are valid. */
export function keySetFile(kind: KeyKind): string {
  return `keys/${kind}.next`;
}

/** The key that encrypts browsers' cookies during a sign-in. It has no file: a single server makes its own. */
export const consoleSecretName = 'console';

/** The ACME account, and the certificate with its key. Each server has both in files as well. */
export const acmeSecrets = { account: 'acme-account', certificate: 'acme-certificate' } as const;

/** The name of a cluster's pinned host keys: those first seen, where the lab file pins none. */
export function knownHostsName(clusterId: string): string {
  return `known-hosts/${clusterId}`;
}

/** A secret of the database as the subject of a sentence. */
export function secretTitle(name: string): string {
  return `The secret ${name} in the database`;
}

/** The topic of the notice between servers that a secret has changed. */
export const secretsTopic = 'secrets';
