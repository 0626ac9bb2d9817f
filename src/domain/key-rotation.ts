/**
 * How a key of the service gives way to another. The next one is put beside it, and both hold for as long as is said then: for the
 * first half the one before is used, so that whoever has to know the next one gets to, and for the second half the next one is. Then
 * the one before goes. All of it follows from the time alone, so that every server does the same, also one that was away.
 */
import { invalidState } from './error.ts';

export const keyKinds = ['host', 'client', 'issuer', 'audit'] as const;
export type KeyKind = (typeof keyKinds)[number];

/** How long the key before holds, unless it is said. */
export const usualKeepDays = 30;
const dayMs = 86_400_000;

/** A key, and the one that is to take its place. Times in RFC 3339. */
export interface KeySet<Key> {
  key: Key;
  next?: { key: Key; from: string; until: string };
}

/** The keys that hold at a time. */
export interface HeldKeys<Key> {
  used: Key;
  /** Its turn is to come, `from` then on. */
  next?: Key;
  /** It was used before. */
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

/** The set with another key beside its own. For 0 days, it is that one alone, whatever a server's clock says. */
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

/** A set as one text, for where it is kept so. */
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
