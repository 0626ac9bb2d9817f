/**
 * Authentication: finds the person of a bearer token. The token is verified against the issuer's keys and cached until it
 * expires or the issuer's key set changes, so that a repeated request costs no signature check. Permissions are not decided
 * here.
 *
 * Flow: Authorization header → token (cached or verified: token.ts) → person (known, bound or made).
 */
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { signInMs } from '../../domain/access/lapse.ts';
import { DomainError, SignInRefusal, unauthorized } from '../../domain/error.ts';
import { foldEmail, isEmail } from '../../domain/people/person.ts';
import { cutText } from '../../domain/text.ts';
import { clockToleranceMs } from '../../lib/clock.ts';
import { appendAuditEntry } from '../../store/audit/audit.ts';
import { hears, type Reader, type Store, type Tx } from '../../store/engine/index.ts';
import { createMembership } from '../../store/organizations/membership-changes.ts';
import { wasEverMember } from '../../store/organizations/memberships.ts';
import { findAutoJoinOrganization } from '../../store/organizations/organizations.ts';
import {
  createIdentity,
  findIdentity,
  hasIdentityAt,
  isErasedIdentity,
  isUnbound,
} from '../../store/people/identities.ts';
import {
  createPerson,
  findLeastSignInHours,
  findPersonByEmail,
  findPerson as findPersonById,
  recordSignIn,
  systemUserId,
  updateEmail,
  updatePreferredUsername,
} from '../../store/people/people.ts';
import type { TakeGroups } from './groups.ts';
import { issuedAt, signedInAt, type TokenRules, type VerifiedToken, verifyToken } from './token.ts';

export interface AuthenticatorOptions {
  store: Store;
  rules: TokenRules;
  keys: JWTVerifyGetKey;
  /** Fetches the issuer's userinfo, for a token without a verified email; empty if it is about another subject. */
  userinfo(token: string, subject: string): Promise<Record<string, unknown>>;
  /** Whether the person has ended the sign-in that a token is from; absent: the sign-in lasts as long as the token. */
  isSignInOver?: ((userId: string, claims: JWTPayload) => Promise<boolean>) | undefined;
  /** Called if access lapses without a sign-in but the issuer sends no time of the sign-in. */
  onNoSignInTime?(): void;
  takeGroups?: TakeGroups | undefined;
  /** The keyed hash under which an erased person's identity is stored. */
  markIdentity(issuer: string, subject: string): string;
  now(): number;
}

/**
 * Resolves an Authorization header to a user ID. Throws `unauthorized`; `integration_unavailable` if the issuer is
 * needed and cannot be reached; `serviceAccountRefusal` for a service account (contract, "Authentication": Business
 * says 401, Platform 403).
 */
export type Authenticate = (
  authorization: string | undefined,
  serviceAccountRefusal: 'unauthorized' | 'forbidden',
) => Promise<string>;

interface CachedToken extends Pick<VerifiedToken, 'subject' | 'expiresAt' | 'claims' | 'isKeyInForce'> {
  /** Undefined for a service account. */
  userId: string | undefined;
  /** The person's change count at the last check of the account; undefined before the first. */
  changes: number | undefined;
  /** The time of that check, on the monotonic clock. */
  checkedAt: number;
}

const mostTokens = 10_000;
/** The notice of a change on another server can be late, so every account is checked again after this time. */
const recheckMs = 5_000;

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  /** Keyed by the whole Authorization header, so that a repeated request costs no parsing. */
  const cache = new Map<string, CachedToken>();

  async function verify(authorization: string | undefined): Promise<CachedToken> {
    const [, token] = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '') ?? [];
    if (authorization === undefined || token === undefined) {
      throw unauthorized('Send an access token: sign in with `andromeda auth login`.');
    }
    const verified = await verifyToken(token, options.rules, options.keys, options.now());
    const userId = verified.isServiceAccount ? undefined : await findPerson(options, verified, token);
    const { subject, expiresAt, claims, isKeyInForce } = verified;
    if (userId !== undefined) await noteSignIn(options, userId, claims);
    const isTaken = userId === undefined || (await options.takeGroups?.(userId, claims, token)) !== false;
    const entry = { subject, expiresAt, claims, isKeyInForce, userId, changes: undefined, checkedAt: 0 };
    if (!isTaken) return entry;
    // A Map keeps the order of insertion, so the first key is the oldest.
    if (cache.size >= mostTokens) cache.delete(cache.keys().next().value ?? '');
    cache.set(authorization, entry);
    return entry;
  }

  const changesOf = countChanges(options.store);
  return async (authorization, serviceAccountRefusal) => {
    const kept = cache.get(authorization ?? '');
    if (kept && kept.expiresAt + clockToleranceMs <= options.now()) {
      cache.delete(authorization ?? '');
      throw unauthorized('The access token has expired.');
    }
    const entry = kept && (await kept.isKeyInForce()) ? kept : await verify(authorization);
    if (entry.userId === undefined) {
      throw new DomainError(
        serviceAccountRefusal,
        'Service accounts cannot use this service; sign in as a person.',
      );
    }
    const latest = changesOf(entry.userId);
    const isOld = performance.now() - entry.checkedAt >= recheckMs;
    if (entry.changes !== latest || isOld) {
      const checkedAt = performance.now();
      await requireAccount(options, entry.userId, entry);
      Object.assign(entry, { changes: latest, checkedAt });
    }
    return entry.userId;
  };
}

/**
 * Counts the changes of a person since the start, on any server: a change may have ended the account or its sign-ins.
 */
function countChanges(store: Store): (userId: string) => number {
  const changes = new Map<string, number>();
  let ofAll = 0;
  store.onChange(hears.tokens, (some) => {
    for (const change of some) {
      if (change.kind === 'everything') ofAll += 1;
      else changes.set(change.userId, (changes.get(change.userId) ?? 0) + 1);
    }
  });
  return (userId) => ofAll + (changes.get(userId) ?? 0);
}

/** Checks what may have changed since the token was issued: an ended sign-in, a deactivated account, an identity bound to another one. */
async function requireAccount(
  { isSignInOver, store, rules, now }: AuthenticatorOptions,
  userId: string,
  { subject, claims }: CachedToken,
): Promise<void> {
  const bound = await findIdentity(store.read, rules.issuer, subject);
  if (bound?.userId !== userId) {
    throw unauthorized('This sign-in is not bound to the account any more. Sign in again.');
  }
  requireActive(bound);
  if (bound.signedOutAt !== null) {
    // The clock of another issuer may be ahead of ours, so that its tokens of the next minute may be earlier ones.
    const aheadMs = isSignInOver ? 0 : clockToleranceMs;
    requireSignInAfter(Date.parse(bound.signedOutAt) + aheadMs, claims, now());
  }
  if (await isSignInOver?.(userId, claims)) {
    throw unauthorized('The password was changed since; sign in again.');
  }
}

/** Throws `unauthorized` unless the token and its sign-in are later than the end of the person's sign-ins. */
function requireSignInAfter(endedAt: number, claims: JWTPayload, now: number): void {
  const beganAt = signedInAt(claims, now);
  // `iat` is in whole seconds: a token issued in the same second counts as issued before.
  if (claims.iat !== undefined && claims.iat * 1000 <= endedAt)
    throw unauthorized('This sign-in was ended. Sign in again; if it was ended just now, in a minute.');
  // An older refresh token yields access tokens with a later `iat`.
  if (beganAt !== undefined && beganAt <= endedAt)
    throw new SignInRefusal(
      'too_old',
      'This sign-in was ended, and the issuer still goes on with it. Sign out at the issuer, and sign in again.',
    );
  if (claims.iat === undefined && beganAt === undefined)
    throw unauthorized(
      'Sign-ins were ended, and the token does not say when it was issued. Tell your operator: the issuer must send iat or auth_time.',
    );
}

/**
 * Records the sign-in. If access lapses without a sign-in, only the person's own counts, so that no background
 * refresh keeps access alive. A failed write (full disk) does not refuse a valid token; the next sign-in is recorded.
 */
async function noteSignIn(
  { store, now, onNoSignInTime }: AuthenticatorOptions,
  userId: string,
  claims: JWTPayload,
): Promise<void> {
  let at = signedInAt(claims, now());
  if (at === undefined) {
    const { policy } = store.lapses;
    if (signInMs(policy, await findLeastSignInHours(store.read)) !== undefined) return onNoSignInTime?.();
    at = issuedAt(claims, now());
  }
  await recordSignIn(store, userId, at).catch((error: unknown) => {
    if (!(error instanceof DomainError && error.code === 'service_unavailable')) throw error;
  });
}

/**
 * The user ID for a verified token. A known subject resolves to its bound account. A new subject is bound to the
 * account with its verified email, unless that has another subject at this issuer; or to a new account, if the
 * email's domain joins an organization automatically and the subject is not an erased person's. Throws `unauthorized`
 * if there is no account, `integration_unavailable` if the issuer must be asked and is down.
 */
async function findPerson(deps: AuthenticatorOptions, token: VerifiedToken, raw: string): Promise<string> {
  const { store } = deps;
  const bound = await findIdentity(store.read, token.issuer, token.subject);
  const { trustEmail } = deps.rules;
  if (bound !== undefined) {
    await followName(store, token.claims, requireActive(bound));
    return followEmail(store, profileOf(token.claims, trustEmail), token, bound.userId);
  }
  const claims =
    profileOf(token.claims, trustEmail) ?? profileOf(await deps.userinfo(raw, token.subject), trustEmail);
  if (claims === undefined) {
    throw new SignInRefusal(
      'no_address',
      'The issuer gives no verified email address for this sign-in. Ask your operator: it verifies yours, or `identity.trustEmail` says what is trusted.',
    );
  }
  const userId = await store.write(async (tx) => {
    const earlier = await findIdentity(tx.db, token.issuer, token.subject);
    if (earlier !== undefined) return requireActive(earlier);
    if (await isUnbound(tx.db, token.issuer, token.subject)) {
      throw unauthorized(
        `This sign-in was taken from its account. If it is to be bound again, ask your operator to run: andromeda admin person rebind ${claims.email} --issuer ${token.issuer}`,
      );
    }
    const wasErased = await isErasedIdentity(tx.db, deps.markIdentity(token.issuer, token.subject));
    const account = await accountFor(tx, token.issuer, claims, wasErased);
    await createIdentity(tx, { issuer: token.issuer, subject: token.subject, userId: account });
    await appendAuditEntry(tx, {
      actorUserId: account,
      operation: 'bindIdentity',
      target: account,
      subjectUserId: account,
      reason: 'First sign-in with this identity',
      result: 'done',
      details: `${token.subject} of ${token.issuer}`,
    });
    return account;
  });
  await followName(store, claims, userId);
  return userId;
}

/** Stores `preferred_username` once, even for an older account: API servers may know the person by it. */
async function followName(store: Store, claims: Record<string, unknown>, userId: string): Promise<void> {
  const name = claims['preferred_username'];
  // API servers compare the name exactly, so it is not normalized.
  if (typeof name !== 'string' || !/^\P{C}{1,1000}$/u.test(name)) return;
  if ((await findPersonById(store.read, userId))?.preferredUsername !== null) return;
  await store.write((tx) => updatePreferredUsername(tx, userId, name));
}

/**
 * Takes over a new verified address of a bound identity. An address of another account stays there, invited or not; a
 * new address joins no organization. Tokens older than the account's last change are ignored.
 */
async function followEmail(
  store: Store,
  profile: Profile | undefined,
  { claims }: VerifiedToken,
  userId: string,
): Promise<string> {
  if (profile === undefined) return userId;
  const { email } = profile;
  const isNews = async (db: Reader) => {
    const person = await findPersonById(db, userId);
    if (!person || person.email === foldEmail(email)) return undefined;
    if (Number(claims['iat'] ?? 0) * 1000 <= Date.parse(person.updatedAt)) return undefined;
    return (await findPersonByEmail(db, email)) ? undefined : person;
  };
  if (!(await isNews(store.read))) return userId;
  await store.write(async (tx) => {
    const person = await isNews(tx.db);
    if (!person) return;
    await updateEmail(tx, { userId, email });
    await appendAuditEntry(tx, {
      actorUserId: userId,
      operation: 'followEmail',
      target: userId,
      subjectUserId: userId,
      reason: 'The issuer says another verified address',
      result: 'done',
      details: `${person.email} → ${foldEmail(email)}`,
    });
  });
  return userId;
}

interface Profile extends Record<string, unknown> {
  email: string;
}

/**
 * The claims, with an address that the issuer has verified or that the operator's configuration trusts; undefined
 * without one. Some issuers send `email_verified` as text.
 */
function profileOf(claims: Record<string, unknown>, trusted: readonly string[] = []): Profile | undefined {
  const { email, email_verified: verified } = claims;
  const isVouchedFor =
    [true, 'true'].includes(verified as never) ||
    trusted.some((one) => typeof email === 'string' && email.toLowerCase().endsWith(`@${one.toLowerCase()}`));
  const addresses = [isVouchedFor && email, ...trusted.map((name) => claims[name])];
  const found = addresses.find((one) => typeof one === 'string' && isEmail(one));
  return typeof found === 'string' ? { ...claims, email: found } : undefined;
}

function requireActive({ userId, state }: { userId: string; state: string }): string {
  if (state === 'active') return userId;
  throw new SignInRefusal('deactivated', 'This account is deactivated. Ask your operator.');
}

function shownText(claim: unknown): string | undefined {
  if (typeof claim !== 'string') return undefined;
  const text = cutText(claim, 1000).replace(/\p{C}+/gu, ' ');
  return cutText(text.trim(), 80).trim() || undefined;
}

async function accountFor(tx: Tx, issuer: string, profile: Profile, wasErased: boolean): Promise<string> {
  const { email, name } = profile;
  const domain = email.slice(email.lastIndexOf('@') + 1);
  const organizationId = await findAutoJoinOrganization(tx.db, domain);
  const existing = await findPersonByEmail(tx.db, email);
  if (!existing && (organizationId === undefined || wasErased)) {
    throw new SignInRefusal('no_account', `There is no account for ${email}. Ask your operator for one.`);
  }
  if (existing) {
    requireActive({ userId: existing.id, state: existing.lifecycleState });
    // The issuer may give an address to another person, who must not get the account.
    if (await hasIdentityAt(tx.db, existing.id, issuer)) {
      throw new SignInRefusal(
        'bound',
        `The account of ${email} is bound to another sign-in at ${issuer}. If it is yours, ask your operator to run: andromeda admin person rebind ${email}`,
      );
    }
  }
  const userId =
    existing?.id ??
    (await createPerson(tx, {
      email,
      displayName: shownText(name) ?? email,
    }));
  if (organizationId !== undefined && !(await wasEverMember(tx.db, organizationId, userId))) {
    await createMembership(tx, { organizationId, userId, email, role: 'member' });
    await appendAuditEntry(tx, {
      actorUserId: systemUserId,
      operation: 'joinByDomain',
      target: `${organizationId}/${userId}`,
      organizationId: organizationId,
      subjectUserId: userId,
      reason: `The sign-in domain ${domain} joins the organization automatically`,
      result: 'done',
    });
  }
  return userId;
}
