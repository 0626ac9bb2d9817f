/** From a verified token to an account. */
import { unauthorized } from '../../domain/error.ts';
import { foldEmail, isEmail } from '../../domain/people/email.ts';
import { cutText } from '../../domain/stored-text.ts';
import { appendAuditEntry } from '../../store/audit/audit.ts';
import type { Reader, Store, Tx } from '../../store/engine/index.ts';
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
  findPersonByEmail,
  findPerson as findPersonById,
  systemUserId,
  updateEmail,
} from '../../store/people/people.ts';
import type { VerifiedToken } from './token.ts';

interface PersonDeps {
  store: Store;
  userinfo(token: string): Promise<Record<string, unknown>>;
  markIdentity(issuer: string, subject: string): string;
}

/**
 * The user ID of the person a token is. A known subject is who it was bound to. A new one is bound to the account
 * with its verified email, unless that account has another subject at this issuer already; or, when the email's domain joins an organization
 * automatically and the subject is none of an erased person's, to a new account.
 * Throws `unauthorized` when there is none, `integration_unavailable` when the issuer has to be asked and is down.
 */
export async function findPerson(deps: PersonDeps, token: VerifiedToken, raw: string): Promise<string> {
  const { store } = deps;
  const bound = await findIdentity(store.read, token.issuer, token.subject);
  if (bound !== undefined) return followEmail(store, token, requireActive(bound));
  const claims = hasVerifiedEmail(token.claims) ? token.claims : await userinfoOf(deps, token, raw);
  if (!hasVerifiedEmail(claims)) {
    throw unauthorized('The issuer gives no verified email address for this sign-in.');
  }
  return store.write(async (tx) => {
    const earlier = await findIdentity(tx.db, token.issuer, token.subject);
    if (earlier !== undefined) return requireActive(earlier);
    if (await isUnbound(tx.db, token.issuer, token.subject)) {
      throw unauthorized(
        `This sign-in was taken from its account. If it is to be bound again, ask your operator to run: andromeda admin person rebind ${claims.email} --issuer ${token.issuer}`,
      );
    }
    const wasErased = await isErasedIdentity(tx.db, deps.markIdentity(token.issuer, token.subject));
    const userId = await accountFor(tx, token.issuer, claims, wasErased);
    await createIdentity(tx, { issuer: token.issuer, subject: token.subject, userId });
    await appendAuditEntry(tx, {
      actorUserId: userId,
      operation: 'bindIdentity',
      target: userId,
      subjectUserId: userId,
      reason: 'First sign-in with this identity',
      result: 'done',
      details: `${token.subject} of ${token.issuer}`,
    });
    return userId;
  });
}

/**
 * Takes over a new verified address that the issuer says of a bound identity. An address that is another account's stays with
 * that one, invited or not; and no organization is joined by it. A token from before the account last changed says nothing new.
 */
async function followEmail(store: Store, { claims }: VerifiedToken, userId: string): Promise<string> {
  if (!hasVerifiedEmail(claims)) return userId;
  const { email } = claims;
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

/** The issuer's userinfo for a token; empty when it is of another subject (OpenID Connect Core 1.0, 5.3.2). */
async function userinfoOf(
  deps: PersonDeps,
  token: VerifiedToken,
  raw: string,
): Promise<Record<string, unknown>> {
  const claims = await deps.userinfo(raw);
  return claims['sub'] === token.subject ? claims : {};
}

interface Profile extends Record<string, unknown> {
  email: string;
}

function hasVerifiedEmail(claims: Record<string, unknown>): claims is Profile {
  const { email, email_verified } = claims;
  return typeof email === 'string' && isEmail(email) && email_verified === true;
}

/** Throws `unauthorized` for a deactivated account. */
export function requireActive({ userId, state }: { userId: string; state: string }): string {
  if (state === 'active') return userId;
  throw unauthorized('This account is deactivated. Ask your operator.');
}

/** A claim as it is stored: without control characters, and not longer than what is shown of a name. */
function shownText(claim: unknown): string | undefined {
  if (typeof claim !== 'string') return undefined;
  const text = cutText(claim, 1000).replace(/\p{C}+/gu, ' ');
  return cutText(text.trim(), 80).trim() || undefined;
}

async function accountFor(tx: Tx, issuer: string, profile: Profile, wasErased: boolean): Promise<string> {
  const { email, name, preferred_username } = profile;
  const domain = email.slice(email.lastIndexOf('@') + 1);
  const organizationId = await findAutoJoinOrganization(tx.db, domain);
  const existing = await findPersonByEmail(tx.db, email);
  if (!existing && (organizationId === undefined || wasErased)) {
    throw unauthorized(`There is no account for ${email}. Ask your operator for one.`);
  }
  if (existing) {
    requireActive({ userId: existing.id, state: existing.lifecycleState });
    // The issuer may give an address to another person; the account must not go with it.
    if (await hasIdentityAt(tx.db, existing.id, issuer)) {
      throw unauthorized(
        `The account of ${email} is bound to another sign-in at ${issuer}. If it is yours, ask your operator to run: andromeda admin person rebind ${email}`,
      );
    }
  }
  const userId =
    existing?.id ??
    (await createPerson(tx, {
      email,
      displayName: shownText(name) ?? email,
      preferredUsername: shownText(preferred_username),
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
