/**
 * Rules that make people members by their groups at the issuer. Permissions from rules and permissions given by hand
 * are stored separately: only their source takes them away, and a member holds the union.
 */
import {
  forGood,
  type GrantedPermission,
  isPermissionKey,
  type PermissionKey,
  type Role,
  withLatestEnds,
} from '../access/permission.ts';
import { invalidRequest } from '../error.ts';
import type { Problem } from '../installation-state.ts';
import { cutText, storedText } from '../text.ts';

/** People in the group become members of the organization (its slug), with at least this role and these permissions. */
export interface GroupRule {
  group: string;
  organization: string;
  role: Role;
  permissions: readonly PermissionKey[];
}

/** The claim with people's groups, and the rules for them. Without rules, groups are only recorded. */
export interface GroupSettings {
  source: GroupClaim;
  rules: readonly GroupRule[];
}

/** The limit on rules; every one is evaluated for each person. */
export const mostRules = 1000;

/** A rule with its defaults filled in. Throws `invalid_request`, naming the rule's position `at`, for an invalid one. */
export function ruleOf(
  given: {
    group: string;
    organization: string;
    role?: Role | undefined;
    permissions?: readonly string[] | undefined;
  },
  at: string,
): GroupRule {
  const { group, organization, role = 'member', permissions = [] } = given;
  if (!isGroupName(group)) throw invalidRequest(`${at}.group cannot be the name of a group.`);
  if (role !== 'member' && permissions.length > 0)
    throw invalidRequest(`${at}: an ${role} holds every permission; leave permissions out.`);
  const keys = [...new Set(permissions)].sort().map((key) => {
    if (isPermissionKey(key)) return key;
    throw invalidRequest(`${at}.permissions: ${JSON.stringify(cutText(key, 80))} is not a permission.`);
  });
  return { group, organization, role, permissions: keys };
}

/** Throws `invalid_request` for a rule whose organization does not exist; `at` is the position of the rules. */
export function refuseUnknownSlugs(rules: readonly GroupRule[], slugs: readonly string[], at: string): void {
  const index = rules.findIndex(({ organization }) => !slugs.includes(organization));
  const rule = rules[index];
  if (!rule) return;
  throw invalidRequest(
    `${at}[${index}].organization: there is no organization ${cutText(rule.organization, 80)}. Give the slug of one, as \`andromeda admin organization list\` shows it.`,
  );
}

/** A member's role and permissions. Owners and admins hold every permission without any grant. */
export interface HeldRole {
  role: Role;
  permissions: readonly GrantedPermission[];
}

export interface Gift {
  role: Role;
  permissions: readonly string[];
  groups: readonly string[];
}

const ranks: Record<Role, number> = { member: 0, admin: 1, owner: 2 };

export function isLowerRole(role: Role, than: Role): boolean {
  return ranks[role] < ranks[than];
}

/** The role and permissions that rules give for these groups, by the organization's slug. */
export function giftsOf(rules: readonly GroupRule[], groups: readonly string[]): Map<string, Gift> {
  const held = new Set(groups);
  const gifts = new Map<string, Gift>();
  for (const { group, organization, role, permissions } of rules) {
    if (!held.has(group)) continue;
    const before = gifts.get(organization) ?? { role, permissions: [], groups: [] };
    gifts.set(organization, {
      role: isLowerRole(before.role, role) ? role : before.role,
      permissions: [...new Set([...before.permissions, ...permissions])].sort(),
      groups: [...new Set([...before.groups, group])].sort(),
    });
  }
  return gifts;
}

/** The union of a member's manual permissions and those from rules; undefined for a non-member. */
export function combined(byHand: HeldRole | undefined, byRules: Gift | undefined): HeldRole | undefined {
  const [first, second = first] = [byHand, byRules].flatMap((one) => one?.role ?? []);
  if (!first || !second) return undefined;
  const role = isLowerRole(first, second) ? second : first;
  if (role !== 'member') return { role, permissions: [] };
  const given = [...forGood(byRules?.permissions ?? []), ...(byHand?.permissions ?? [])];
  return { role, permissions: withLatestEnds(given) };
}

export function differenceOf(
  before: HeldRole | undefined,
  after: HeldRole | undefined,
): { gained: string[]; lost: string[] } {
  const [had, has] = [namesOf(before), namesOf(after)];
  return { gained: has.filter((one) => !had.includes(one)), lost: had.filter((one) => !has.includes(one)) };
}

function namesOf(held: HeldRole | undefined): string[] {
  if (!held) return [];
  const { role, permissions } = held;
  return ['membership', ...(role === 'member' ? [] : [`role ${role}`]), ...permissions.map(({ key }) => key)];
}

export function reasonOfGroups(groups: readonly string[]): string {
  return `${groups.length === 1 ? 'group' : 'groups'} ${groups.join(', ')} at the issuer`;
}

/** People whose groups could not be applied, and last owners whom rules would remove. Times in RFC 3339. */
export function problemsOfGroups(
  faults: { people: number; since: string; fault: string; email: string } | undefined,
  keptOwners: readonly { slug: string; email: string; groups: readonly string[]; since: string }[],
  /** The configured claim, if no token had it yet although people have signed in. */
  unseen: string | undefined,
): Problem[] {
  const ofOwners = keptOwners.map(({ slug, email, groups, since }): Problem => {
    return {
      area: 'identity',
      about: slug,
      urgency: 'now',
      since,
      message: `${email} is its last owner by ${reasonOfGroups(groups)}, which no longer gives that, and stays owner.`,
      action: 'Make someone else an owner, by hand or by a rule; it then ends at their next sign-in.',
    };
  });
  const about = { area: 'identity', about: 'groups at the issuer' } as const;
  if (!faults && unseen !== undefined)
    ofOwners.push({
      ...about,
      urgency: 'soon',
      message: `No access token, and no answer of userinfo, has had the claim ${unseen} (identity.groups.claim) yet.`,
      action: 'Compare its name with what the issuer sends (docs/identity-provider.md).',
    });
  if (!faults) return ofOwners;
  const { people, since, fault, email } = faults;
  const whose = people === 1 ? `of ${email}` : `of ${people} people, ${email} among them,`;
  return [
    ...ofOwners,
    {
      ...about,
      urgency: 'now',
      since,
      message: `What the issuer says of the groups ${whose} is not taken over, and what they have stays. ${fault}`,
      action: 'Mend it at the issuer (docs/identity-provider.md). It is taken over at the next sign-in.',
    },
  ];
}

export interface GroupClaim {
  issuer: string;
  claim: string;
}

export type SaidGroups =
  /** Distinct and sorted. */
  | { kind: 'groups'; groups: readonly string[] }
  | { kind: 'absent' }
  /** The claim is there, or should be, and cannot be used; the text is for operators. */
  | { kind: 'fault'; fault: string };

const mostGroups = 10_000;
/** In UTF-16 units. */
export const longestGroup = 256;

/**
 * A person's groups from the claims of an access token or of userinfo: a list of names, in a claim or at a path
 * (`realm_access.roles`). Any other value is a fault, on which no permission is given or taken.
 */
export function readGroups(claims: Readonly<Record<string, unknown>>, claim: string): SaidGroups {
  if (hasOverage(claims, claim)) {
    return fault(
      `The issuer sends a link in the place of the claim ${claim}, as there are too many groups for a token (overage). Have it send only groups that are assigned to the application.`,
    );
  }
  const value = valueAt(claims, claim);
  if (value === undefined) return { kind: 'absent' };
  if (!Array.isArray(value)) return fault(`The claim ${claim} is not a list.`);
  if (value.length > mostGroups) return fault(`The claim ${claim} has more than ${mostGroups} groups.`);
  if (!value.every(isGroupName)) {
    return fault(`The claim ${claim} is not a list of texts of 1 to ${longestGroup} characters.`);
  }
  return { kind: 'groups', groups: [...new Set(value)].sort() };
}

/** The claim of that exact name, which may contain dots as URNs and URLs do, else the value at that path. */
function valueAt(claims: object, claim: string): unknown {
  if (Object.hasOwn(claims, claim)) return (claims as Record<string, unknown>)[claim];
  const [name, inner] = Object.entries(claims).find(([name]) => claim.startsWith(`${name}.`)) ?? [''];
  return typeof inner === 'object' && inner !== null
    ? valueAt(inner, claim.slice(name.length + 1))
    : undefined;
}

function isGroupName(value: unknown): value is string {
  return (
    typeof value === 'string' && value !== '' && value.length <= longestGroup && storedText(value) === value
  );
}

/**
 * Microsoft Entra's mark for more groups than a token holds (overage): `_claim_names` names the claim (OpenID Connect
 * Core 1.0, 5.6.2: distributed claims), or `hasgroups` is true.
 */
function hasOverage(claims: Readonly<Record<string, unknown>>, claim: string): boolean {
  const { _claim_names: names, hasgroups } = claims;
  const isLinked = typeof names === 'object' && names !== null && Object.hasOwn(names, claim);
  const isAbsent = valueAt(claims, claim) === undefined;
  return isLinked || (isAbsent && (hasgroups === true || hasgroups === 'true'));
}

function fault(fault: string): SaidGroups {
  return { kind: 'fault', fault };
}
