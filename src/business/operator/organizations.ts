/** Organizations, as operators see and make them. */
import { foldEmail } from '../../domain/email.ts';
import type { CommandReply } from '../../domain/operation.ts';
import { runCommand } from '../../store/commands.ts';
import type { Reader } from '../../store/index.ts';
import { createMembership } from '../../store/membership-changes.ts';
import { listAllGrantedPermissions, listMembers } from '../../store/memberships.ts';
import {
  createOrganization,
  listOrganizations,
  type OrganizationSummary,
  retireOrganization,
  updateAutoJoinDomains,
  updateOrganizationName,
} from '../../store/organizations.ts';
import { findOrCreatePerson } from '../../store/people.ts';
import { membershipBody } from '../me.ts';
import { grantedBody } from '../member-permissions.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../operation.ts';
import { organizationBody, requireOrganization } from '../organizations.ts';
import { requireOperator, requireStaff } from './staff.ts';

/** Every organization, oldest first. */
export async function operatorListOrganizations(
  { store }: BusinessDeps,
  { caller }: BusinessRequest<'operatorListOrganizations'>,
): Promise<BusinessReply<'operatorListOrganizations'>> {
  await requireStaff(store.read, caller.userId, 'staff.read');
  return { organizations: (await listOrganizations(store.read)).map(summaryBody) };
}

/** Makes an organization with its first owner. */
export function operatorCreateOrganization(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorCreateOrganization'>,
): Promise<CommandReply<BusinessReply<'operatorCreateOrganization'>>> {
  const { body, caller } = request;
  const { slug, display_name, owner_username } = body;
  const domains = body.auto_join_domains ?? [];
  const email = foldEmail(body.owner_email);
  return runCommand(deps.store, request, {
    operation: 'operatorCreateOrganization',
    meaning: [slug, display_name, email, owner_username ?? '', [...domains].sort()],
    about: { target: slug, details: `owner ${email}` },
    authorize: requireOperator,
    async apply(tx) {
      const made = { slug, displayName: display_name, autoJoinDomains: domains, createdBy: caller.userId };
      const organizationId = await createOrganization(tx, made);
      const { userId } = await findOrCreatePerson(tx, { email });
      await createMembership(tx, { organizationId, userId, email, role: 'owner', username: owner_username });
      return {
        result: await organizationReply(tx.db, organizationId),
        about: { organizationId, subjectUserId: userId },
      };
    },
  });
}

/** Renames an organization, or sets the domains that join it; what is left out stays. */
export function operatorUpdateOrganization(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorUpdateOrganization'>,
): Promise<CommandReply<BusinessReply<'operatorUpdateOrganization'>>> {
  const organizationId = request.path.orgID;
  const { display_name, auto_join_domains: domains } = request.body;
  const details = [
    display_name === undefined ? '' : `name → ${display_name}`,
    domains === undefined ? '' : `domains → ${domains.join(', ') || 'none'}`,
  ];
  return runCommand(deps.store, request, {
    operation: 'operatorUpdateOrganization',
    meaning: [organizationId, display_name ?? null, domains ? [...domains].sort() : null],
    about: {
      target: organizationId,
      organizationId,
      details: details.filter(Boolean).join('; '),
    },
    authorize: requireOperator,
    async apply(tx) {
      await requireOrganization(tx.db, organizationId);
      if (display_name !== undefined) {
        await updateOrganizationName(tx, { organizationId, displayName: display_name });
      }
      if (domains) await updateAutoJoinDomains(tx, { organizationId, domains });
      return { result: await organizationReply(tx.db, organizationId) };
    },
  });
}

/** Ends an organization whose clusters are released. */
export function operatorRetireOrganization(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorRetireOrganization'>,
): Promise<CommandReply<BusinessReply<'operatorRetireOrganization'>>> {
  const organizationId = request.path.orgID;
  const about = { target: organizationId, organizationId };
  return runCommand(deps.store, request, {
    operation: 'operatorRetireOrganization',
    meaning: [organizationId],
    about,
    authorize: requireOperator,
    async apply(tx) {
      await requireOrganization(tx.db, organizationId);
      await retireOrganization(tx, organizationId);
      return { result: await organizationReply(tx.db, organizationId) };
    },
  });
}

/** Every member of an organization with what they were granted, oldest membership first. */
export async function operatorListMembers(
  { store }: BusinessDeps,
  { caller, path, query, now }: BusinessRequest<'operatorListMembers'>,
): Promise<BusinessReply<'operatorListMembers'>> {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const { id } = await requireOrganization(store.read, path.orgID);
  const email = query.email === undefined ? undefined : foldEmail(query.email);
  const [listed, granted] = await store.readSnapshot(async (db) => [
    await listMembers(db, id),
    await listAllGrantedPermissions(db, id, now),
  ]);
  const members = listed.filter((one) => email === undefined || one.email === email);
  return {
    members: members.map((member) => ({
      membership: membershipBody(member),
      ...grantedBody(granted.get(member.userId) ?? []),
    })),
  };
}

async function organizationReply(db: Reader, organizationId: string) {
  const [summary] = await listOrganizations(db, organizationId);
  if (!summary) throw new Error(`organization ${organizationId} is gone`);
  return summaryBody(summary);
}

function summaryBody({ organization, domains, members, clusters }: OrganizationSummary) {
  return {
    organization: organizationBody(organization),
    auto_join_domains: domains,
    member_count: members,
    cluster_count: clusters,
  };
}
