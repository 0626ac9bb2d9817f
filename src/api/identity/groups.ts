/** Applies group rules to the groups in a verified token. A token without news costs a few reads and no write. */
import type { JWTPayload } from 'jose';
import { DomainError } from '../../domain/error.ts';
import { type GroupSettings, readGroups, type SaidGroups } from '../../domain/organizations/group-rules.ts';
import { cutText, storedText } from '../../domain/text.ts';
import { followGroups } from '../../store/audit/follow-groups.ts';
import type { Reader, Store, Tx } from '../../store/engine/index.ts';
import { isBehindGroups } from '../../store/organizations/apply-groups.ts';
import {
  findGroups,
  hasSentGroups,
  noteGroupClient,
  saveGroupFault,
  saveGroups,
} from '../../store/people/groups.ts';
import { findPerson } from '../../store/people/people.ts';

export interface GroupsOptions extends GroupSettings {
  store: Store;
  /** The client of tokens that name no client and have this ID as their only audience. */
  cliClientId: string;
  userinfo(token: string, subject: string): Promise<Record<string, unknown>>;
  /** Called if the groups in a token cannot be used. */
  onFault(userId: string, fault: string): void;
  now(): number;
}

/**
 * Applies the groups in a token, or in its userinfo. Resolves to false if the issuer or the database was unavailable
 * and the caller has to retry.
 */
export type TakeGroups = (userId: string, claims: JWTPayload, token: string) => Promise<boolean>;

/** Pause after a failed userinfo request: meanwhile groups are not requested, so that sign-ins do not wait for a timeout. */
const pauseMs = 30_000;

export function createGroups(options: GroupsOptions): TakeGroups {
  const { source, now } = options;
  let pausedUntil = Number.NEGATIVE_INFINITY;

  async function said(claims: JWTPayload, token: string): Promise<SaidGroups | 'unknown' | 'away'> {
    const inToken = readGroups(claims, source.claim);
    if (inToken.kind !== 'absent') return inToken;
    if (performance.now() < pausedUntil) return 'away';
    try {
      return readGroups(await options.userinfo(token, claims.sub ?? ''), source.claim);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code === 'unauthorized') return 'unknown';
      pausedUntil = performance.now() + pauseMs;
      return 'away';
    }
  }

  return async (userId, claims, token) => {
    const groups = await said(claims, token);
    if (typeof groups === 'string') return groups === 'unknown';
    const seconds = claims.iat ?? Number.POSITIVE_INFINITY;
    const tokenAt = Math.min(seconds * 1000, now());
    const client = clientOf(claims, options.cliClientId);
    try {
      await take(options, { userId, groups, client, tokenAt });
      return true;
    } catch (error) {
      if (error instanceof DomainError && error.code === 'service_unavailable') return false;
      throw error;
    }
  };
}

interface ReceivedGroups {
  userId: string;
  groups: SaidGroups;
  client: string | undefined;
  tokenAt: number;
}

async function take(options: GroupsOptions, said: ReceivedGroups): Promise<void> {
  const { store } = options;
  const change = await changeOf(store.read, options, said);
  if (!change) return;
  await store.write(async (tx) => {
    // Another token of this person may have been applied meanwhile.
    const still = await changeOf(tx.db, options, said);
    if (still) await still(tx);
  });
  if (said.groups.kind === 'fault') options.onFault(said.userId, said.groups.fault);
}

async function changeOf(
  db: Reader,
  { source, rules }: GroupsOptions,
  { userId, groups, client, tokenAt }: ReceivedGroups,
): Promise<((tx: Tx) => Promise<void>) | undefined> {
  const known = await findGroups(db, userId, source);
  // Tokens older than the last applied one are ignored.
  if (known && tokenAt < known.tokenAt) return undefined;
  if (groups.kind === 'fault') {
    const { fault } = groups;
    return known?.fault === fault
      ? undefined
      : (tx) => saveGroupFault(tx, userId, source, { fault, tokenAt });
  }
  const hasSent = client !== undefined && (await hasSentGroups(db, source, client));
  if (groups.kind === 'absent' && !hasSent) return undefined;
  const now = groups.kind === 'groups' ? groups.groups : [];
  const isKnown = known?.fault === undefined && JSON.stringify(known?.groups) === JSON.stringify(now);
  if (isKnown && (hasSent || client === undefined) && !(await isBehindGroups(db, userId, rules, now))) {
    return undefined;
  }
  return async (tx) => {
    if (client !== undefined && !hasSent) await noteGroupClient(tx, source, client);
    if (!isKnown) await saveGroups(tx, userId, source, { groups: now, tokenAt });
    const person = await findPerson(tx.db, userId);
    if (person?.lifecycleState !== 'active') return;
    await followGroups(tx, { userId, email: person.email }, rules, now);
  };
}

/**
 * The client that a token was issued to (RFC 9068, 2.2; OpenID Connect Core 1.0, 2). Dex names it only in the audience.
 */
function clientOf({ client_id: id, azp, aud }: JWTPayload, cliClientId: string): string | undefined {
  for (const name of [id, azp])
    if (typeof name === 'string' && name !== '') return storedText(cutText(name, 500));
  const [only, ...others] = [aud ?? []].flat();
  return only === cliClientId && others.length === 0 ? cliClientId : undefined;
}
