/** Applies rules to a person in groups. It may run any number of times: what is so already is left alone. */
import {
  differenceOf,
  type Gift,
  type GroupClaim,
  type GroupRule,
  giftsOf,
} from '../../domain/organizations/group-rules.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { findGroups, listPeopleOfGroups } from '../people/groups.ts';
import { findShares, listSharesOfRules } from './holdings.ts';
import { settleMembership } from './membership-changes.ts';

/** A change of a person's membership, or of the part of it that rules give. */
export interface GroupChange {
  userId: string;
  organizationId: string;
  slug: string;
  /** The groups for which rules give it, or no longer give it. */
  groups: readonly string[];
  gained: readonly string[];
  lost: readonly string[];
  /** Whether they stay an owner because they are the last one. */
  isKept: boolean;
}

interface Pending {
  organizationId: string;
  slug: string;
  gift: Gift | undefined;
}

/**
 * The groups that rules apply to: those that the issuer sent last or, where it never sent any with this claim, those
 * for which rules gave something. Undefined for a person of whom neither is known.
 */
export async function groupsInForce(
  db: Reader,
  userId: string,
  source: GroupClaim | undefined,
): Promise<readonly string[] | undefined> {
  const said = source && (await findGroups(db, userId, source));
  if (said?.groups) return said.groups;
  const known = await listSharesOfRules(db, userId);
  return known.length === 0 ? undefined : known.flatMap(({ byRules }) => byRules?.groups ?? []);
}

/** Whether `applyGroups` would change anything. */
export async function isBehindGroups(
  db: Reader,
  userId: string,
  rules: readonly GroupRule[],
  groups: readonly string[],
): Promise<boolean> {
  return (await listPending(db, userId, giftsOf(rules, groups))).length > 0;
}

export interface PersonBehind {
  userId: string;
  email: string;
  groups: readonly string[];
}

const pageSize = 100;

/** All active people for whom `applyGroups` would change something. It yields to the event loop. */
export async function* listBehindGroups(
  db: Reader,
  rules: readonly GroupRule[],
  source: GroupClaim | undefined,
): AsyncGenerator<PersonBehind> {
  for (let after = ''; ; ) {
    const page = await listPeopleOfGroups(db, { after, limit: pageSize });
    for (const person of page) {
      const groups = await groupsInForce(db, person.userId, source);
      if (groups && (await isBehindGroups(db, person.userId, rules, groups))) yield { ...person, groups };
    }
    after = page.at(-1)?.userId ?? '';
    if (page.length < pageSize) return;
  }
}

/** Gives and takes what `rules` say for these groups. Organizations that are retired, or do not exist, are passed over. */
export async function applyGroups(
  tx: Tx,
  { userId, email }: { userId: string; email: string },
  rules: readonly GroupRule[],
  groups: readonly string[],
): Promise<GroupChange[]> {
  const changes: GroupChange[] = [];
  for (const { organizationId, slug, gift } of await listPending(tx.db, userId, giftsOf(rules, groups))) {
    const member = { organizationId, userId, email };
    const known = await findShares(tx.db, member, tx.now);
    const { before, after, isKept } = await settleMembership(tx, member, known, { byRules: gift });
    const named = [...new Set([...(known.byRules?.groups ?? []), ...(gift?.groups ?? [])])].sort();
    // An owner who was kept before is no news.
    if (isKept && known.keptSince !== undefined) continue;
    changes.push({ userId, organizationId, slug, groups: named, isKept, ...differenceOf(before, after) });
  }
  return changes;
}

async function listPending(db: Reader, userId: string, gifts: ReadonlyMap<string, Gift>): Promise<Pending[]> {
  const known = await listSharesOfRules(db, userId);
  const ids = await activeIds(db, [...gifts.keys()]);
  const pending: Pending[] = known
    .filter(({ slug, byRules, keptSince }) => keptSince !== undefined || !isSame(byRules, gifts.get(slug)))
    .map(({ organizationId, slug }) => {
      return { organizationId, slug, gift: ids.has(slug) ? gifts.get(slug) : undefined };
    });
  for (const [slug, organizationId] of ids) {
    if (!known.some((one) => one.slug === slug))
      pending.push({ organizationId, slug, gift: gifts.get(slug) });
  }
  return pending;
}

/** The IDs of the organizations among these that take members, by slug. */
async function activeIds(db: Reader, slugs: readonly string[]): Promise<Map<string, string>> {
  if (slugs.length === 0) return new Map();
  const rows = await db
    .selectFrom('organizations')
    .select(['id', 'slug'])
    .where('slug', 'in', slugs)
    .where('lifecycle_state', '=', 'active')
    .orderBy('slug')
    .execute();
  return new Map(rows.map(({ id, slug }) => [slug, id]));
}

function isSame(one: Gift | undefined, other: Gift | undefined): boolean {
  const text = (gift: Gift | undefined) => gift && JSON.stringify([gift.role, gift.permissions, gift.groups]);
  return text(one) === text(other);
}
