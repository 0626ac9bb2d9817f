/** Keys that a survey found in files of sshd: which of them can be registered for a person, and why the others cannot. */
import { parseSshPublicKey, sshFingerprint } from '../access/ssh-key.ts';
import type { PersonKey, PersonKeys } from './survey-person.ts';
import type { SurveyedHost } from './survey-report.ts';

export interface FoundKey extends PersonKey {
  /** Why it cannot be registered, apart from being in several accounts. */
  reason: string | undefined;
}

/** The keys of each account, by fingerprint, and the accounts of each key. */
export interface FoundKeys {
  byName: ReadonlyMap<string, ReadonlyMap<string, FoundKey>>;
  holders: ReadonlyMap<string, ReadonlySet<string>>;
  logins: readonly SurveyedHost[];
}

export function findKeys(hosts: readonly SurveyedHost[], gatewayKeys: readonly string[]): FoundKeys {
  const byName = new Map<string, Map<string, FoundKey>>();
  const holders = new Map<string, Set<string>>();
  for (const { name, file, line } of hosts.flatMap(({ keys }) => keys)) {
    const key = readLine(line, file);
    if (!key || gatewayKeys.includes(key.fingerprint)) continue;
    const own = byName.get(name) ?? new Map<string, FoundKey>();
    // A line with options limits what the same key may do without them on another line, so that it counts.
    if (!own.get(key.fingerprint)?.reason) own.set(key.fingerprint, key);
    byName.set(name, own);
    holders.set(key.fingerprint, (holders.get(key.fingerprint) ?? new Set()).add(name));
  }
  return { byName, holders, logins: hosts.filter(({ roles }) => roles.includes('login')) };
}

/** A line of authorized_keys; undefined for one that holds no key. */
export function readLine(line: string, file: string): FoundKey | undefined {
  const [, options = '', type = '', encoded = ''] =
    /^\s*(.*?)\s*\b((?:sk-)?(?:ssh|ecdsa)-[\w@.-]+)\s+(AAAA[A-Za-z0-9+/]+={0,2})(?!\S)/.exec(line) ?? [];
  if (encoded === '') return undefined;
  const found = { line, file, fingerprint: sshFingerprint(Buffer.from(encoded, 'base64')) };
  if (options !== '') return { ...found, reason: 'has options' };
  try {
    const { material, comment } = parseSshPublicKey(line);
    return { ...found, line: `${material} ${comment}`.trim(), reason: undefined };
  } catch {
    return { ...found, reason: type === 'ssh-ed25519' ? 'is not readable' : `is ${type}` };
  }
}

export function keysOf(name: string, { byName, holders, logins }: FoundKeys): PersonKeys {
  const keys: PersonKey[] = [];
  const others: PersonKeys['others'] = [];
  for (const { reason, ...key } of byName.get(name)?.values() ?? []) {
    const holding = [...(holders.get(key.fingerprint) ?? [])].filter((one) => one !== name);
    const why = reason ?? (holding.length > 0 ? `is in the account of ${holding.sort().join(', ')} too` : '');
    if (why === '') keys.push(key);
    else others.push({ ...key, reason: why });
  }
  return { keys, others, unread: unreadOn(name, logins) };
}

function unreadOn(name: string, logins: readonly SurveyedHost[]): string[] {
  if (logins.length === 0) return ['login nodes'];
  const unread = logins.filter(
    ({ fault, accounts, read }) => fault !== null || (accounts.has(name) && !read.includes(name)),
  );
  return unread.map(({ host }) => host);
}
