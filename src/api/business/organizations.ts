/** Organizations, and the caller's standing in one: as a member, or as staff of the installation, who create organizations. */
import { effectivePermissions } from '../../domain/access/permission.ts';
import { forbidden, notFound } from '../../domain/error.ts';
import type { Organization } from '../../domain/organizations/membership.ts';
import { foldEmail, holdsStaffKey, type StaffKey } from '../../domain/people/person.ts';
import { present, snakeCased } from '../../domain/present.ts';
import type { Reader } from '../../store/engine/index.ts';
import { createMembership } from '../../store/organizations/membership-changes.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import * as organizations from '../../store/organizations/organizations.ts';
import { findOrCreatePerson, listStaffKeys } from '../../store/people/people.ts';
import { type Operation, writes } from './operation.ts';
import { operatorWrites, staffReads } from './operator/about.ts';

/** An organization of the caller's; for anyone else it does not exist. */
export const getOrganization: Operation<'getOrganization'> = async ({ store }, { caller, path, now }) => {
  await ownMembership(store.read, path.orgID, caller.userId, now);
  return organizationBody(await requireOrganization(store.read, path.orgID));
};

export const retireOrganization = writes('retireOrganization', (_, { path: { orgID: organizationId } }) => ({
  meaning: [organizationId],
  about: { target: organizationId, organizationId },
  async authorize(tx, { userId }) {
    const who = { organizationId, userId };
    const { role } = await standingIn(tx, who, 'staff.operate', (own) => own.role === 'owner');
    if (role === 'owner') return;
    throw forbidden('Only an owner can retire the organization.');
  },
  async apply(tx) {
    await organizations.retireOrganization(tx, organizationId);
    return { result: organizationBody(await requireOrganization(tx.db, organizationId)) };
  },
}));

type Standing = NonNullable<Awaited<ReturnType<typeof findMembership>>>;

/** Staff have an owner's standing. */
const ofStaff: Standing = { role: 'owner', permissions: effectivePermissions('owner', []), granted: [] };

/**
 * The caller's membership if it `isEnough`; else an owner's standing, for a caller with the staff key; else the
 * membership, which the operation then refuses. Throws `not_found` for callers with neither.
 */
export async function standingIn(
  { db, now }: { db: Reader; now: number },
  { organizationId, userId }: { organizationId: string; userId: string },
  staffKey: StaffKey,
  isEnough: (own: Standing) => boolean = () => true,
): Promise<Standing> {
  const own = await findMembership(db, organizationId, userId, now);
  if (own && isEnough(own)) return own;
  if (holdsStaffKey(await listStaffKeys(db, userId), staffKey)) {
    await requireOrganization(db, organizationId);
    return ofStaff;
  }
  return own ?? ownMembership(db, organizationId, userId, now);
}

/** The caller's membership. Throws `not_found` for a non-member, from whom the organization is hidden. */
export async function ownMembership(db: Reader, organizationId: string, userId: string, now: number) {
  const own = await findMembership(db, organizationId, userId, now);
  if (own) return own;
  throw notFound('There is no such organization, or you are not a member of it.');
}

async function requireOrganization(db: Reader, organizationId: string): Promise<Organization> {
  const organization = await organizations.findOrganization(db, organizationId);
  if (!organization) throw notFound('There is no such organization.');
  return organization;
}

function organizationBody(organization: Organization) {
  return snakeCased(organization, [
    'id',
    'slug',
    'displayName',
    'lifecycleState',
    'createdByUserId',
    'createdAt',
    'updatedAt',
  ]);
}

export const operatorListOrganizations = staffReads<'operatorListOrganizations'>(async ({ store }) => {
  return { organizations: (await organizations.listOrganizations(store.read)).map(summaryBody) };
});

export const operatorCreateOrganization = operatorWrites('operatorCreateOrganization', (_, request) => {
  const { slug, display_name: displayName, owner_username: username, ...body } = request.body;
  const autoJoinDomains = body.auto_join_domains ?? [];
  const email = foldEmail(body.owner_email);
  return {
    meaning: [slug, displayName, email, username ?? '', [...autoJoinDomains].sort()],
    about: { target: slug, details: `owner ${email}` },
    async apply(tx) {
      const made = { slug, displayName, autoJoinDomains, createdBy: request.caller.userId };
      const organizationId = await organizations.createOrganization(tx, made);
      const { userId } = await findOrCreatePerson(tx, { email });
      await createMembership(tx, { organizationId, userId, email, role: 'owner', username });
      return {
        result: await organizationReply(tx.db, organizationId),
        about: { organizationId, subjectUserId: userId },
      };
    },
  };
});

/** Changes an organization's name, the domains that join it, or the lifetime of sign-ins; absent fields stay. */
export const operatorUpdateOrganization = operatorWrites('operatorUpdateOrganization', (_, request) => {
  const { orgID: organizationId } = request.path;
  const { display_name: displayName, auto_join_domains: domains } = request.body;
  const { max_hours_without_sign_in: hours } = request.body;
  const details = [
    displayName === undefined ? '' : `name → ${displayName}`,
    domains === undefined ? '' : `domains → ${domains.join(', ') || 'none'}`,
    hours === undefined ? '' : `hours without a sign-in → ${hours ?? 'as the installation'}`,
  ];
  return {
    meaning: [
      ...[organizationId, displayName ?? null, domains ? [...domains].sort() : null],
      ...(hours === undefined ? [] : [hours]),
    ],
    about: { target: organizationId, organizationId, details: details.filter(Boolean).join('; ') },
    async apply(tx) {
      await requireOrganization(tx.db, organizationId);
      if (displayName !== undefined)
        await organizations.updateOrganizationName(tx, { organizationId, displayName });
      if (domains) await organizations.updateAutoJoinDomains(tx, { organizationId, domains });
      if (hours !== undefined) await organizations.updateSignInHours(tx, { organizationId, hours });
      return { result: await organizationReply(tx.db, organizationId) };
    },
  };
});

async function organizationReply(db: Reader, organizationId: string) {
  const [summary] = await organizations.listOrganizations(db, organizationId);
  if (!summary) throw new Error(`organization ${organizationId} is gone`);
  return summaryBody(summary);
}

function summaryBody({ organization, domains, members, clusters }: organizations.OrganizationSummary) {
  return {
    organization: organizationBody(organization),
    auto_join_domains: domains,
    ...present({ max_hours_without_sign_in: organization.maxHoursWithoutSignIn }),
    member_count: members,
    cluster_count: clusters,
  };
}
