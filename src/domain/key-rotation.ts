/**
 * How a key of the service gives way to another. The next one is put next to it, and both hold for as long as is said then: for the
 * first half the one before is used, so that those who have to know the next one get to, and for the second half the next one is. Then
 * the one before goes. All of it follows from the time alone, so that every server does the same, also one that was away.
 */
import { invalidState } from './error.ts';

export const keyKinds = ['host', 'client', 'issuer', 'audit'] as const;
export type KeyKind = (typeof keyKinds)[number];

/** What to do about a key that cannot be used. */
export function spoiltKeyAdvice(kind: KeyKind): string {
  return `Restore it from a backup. To have a new one, move it away first. ${newKeyAdvice(kind)}`;
}

export function newKeyAdvice(kind: KeyKind): string {
  return `To accept a new one: andromeda admin key new ${kind} --yes`;
}

/** How long the key before holds, unless it is said. */
export const usualKeepDays = 30;
const dayMs = 86_400_000;

/** A key, and the one that is to take its place. Times in RFC 3339. */
export interface KeySet<Key> {
  key: Key;
  next?: { key: Key; from: string; until: string };
}

export interface HeldKeys<Key> {
  used: Key;
  /** Its turn is to come, `from` then on. */
  next?: Key;
  former?: Key;
  from?: string;
  /** When the former, or the one that is used, holds no more. */
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

/** Every key that holds, the one that is used first. */
export function allKeys<Key>({ used, next, former }: HeldKeys<Key>): [Key, ...Key[]] {
  return [used, ...[next, former].filter((key) => key !== undefined)];
}

/** What is kept of a set: without a key whose time is over. The same object where it stays. */
export function settled<Key>(set: KeySet<Key>, now: number): KeySet<Key> {
  return set.next && now >= Date.parse(set.next.until) ? { key: set.next.key } : set;
}

/** The set with another key next to its own. For 0 days, it is that one alone, whatever a server's clock says. */
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

/** Throws `invalid_state` with a sentence that begins with `title`. It quotes nothing of the text. */
export function readKeySet(text: string, title: string): KeySet<string> {
  try {
    const { key, next } = JSON.parse(text) as Partial<KeySet<string>>;
    if (typeof key === 'string' && (next === undefined || isNext(next)))
      return { key, ...(next && { next }) };
  } catch {
    // Thrown below, without the parser's message: it quotes the text, and the text is secret.
  }
  throw invalidState(`${title} holds no key that can be used. Restore it from a backup.`);
}

function isNext(next: Partial<NonNullable<KeySet<string>['next']>>): boolean {
  const { key, from = '', until = '' } = next;
  return typeof key === 'string' && !Number.isNaN(Date.parse(from)) && !Number.isNaN(Date.parse(until));
}

/**
 * What the service keeps secret of its own, and all servers of one database must share: by the name in the database, and by
 * the file of the data directory, which is where it is on SQLite, and from where it gets into a database that has none.
 */
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
