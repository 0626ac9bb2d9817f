/** Organizations, as operators see and make them. */
import { foldEmail } from '../../domain/email.ts';
import type { CommandReply } from '../../domain/operation.ts';
import type { Reader } from '../../store/index.ts';
import { listAllGrantedPermissions, listMembers } from '../../store/members.ts';
import { createMembership } from '../../store/memberships.ts';
import {
  createOrganization,
  listOrganizations,
  type OrganizationSummary,
  retireOrganization,
  updateAutoJoinDomains,
  updateOrganizationName,
} from '../../store/organizations.ts';
import { findOrCreateUser } from '../../store/users.ts';
import { membershipBody } from '../me.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../operation.ts';
import { organizationBody, requireOrganization } from '../organizations.ts';
import { operatorCommand } from './command.ts';
import { requireStaff } from './staff.ts';

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
  const { body, caller, now } = request;
  const { slug, display_name, owner_username } = body;
  const domains = body.auto_join_domains ?? [];
  const email = foldEmail(body.owner_email);
  const what = {
    operation: 'operatorCreateOrganization',
    meaning: [slug, display_name, email, owner_username ?? '', [...domains].sort()],
    about: { target: slug, details: `owner ${email}` },
  };
  return operatorCommand(deps, request, what, async (tx) => {
    const made = { slug, displayName: display_name, autoJoinDomains: domains, createdBy: caller.userId };
    const orgId = await createOrganization(tx, made);
    const { userId } = await findOrCreateUser(tx, { email }, now);
    await createMembership(tx, { orgId, userId, email, role: 'owner', username: owner_username });
    return {
      result: await organizationReply(tx.db, orgId),
      about: { organization_id: orgId, subject_user_id: userId },
    };
  });
}

/** Renames an organization, or sets the domains that join it; what is left out stays. */
export function operatorUpdateOrganization(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorUpdateOrganization'>,
): Promise<CommandReply<BusinessReply<'operatorUpdateOrganization'>>> {
  const orgId = request.path.orgID;
  const { display_name, auto_join_domains: domains } = request.body;
  const details = [
    display_name === undefined ? '' : `name → ${display_name}`,
    domains === undefined ? '' : `domains → ${domains.join(', ') || 'none'}`,
  ];
  const what = {
    operation: 'operatorUpdateOrganization',
    meaning: [orgId, display_name ?? null, domains ? [...domains].sort() : null],
    about: { target: orgId, organization_id: orgId, details: details.filter(Boolean).join('; ') },
  };
  return operatorCommand(deps, request, what, async (tx) => {
    await requireOrganization(tx.db, orgId);
    if (display_name !== undefined) {
      await updateOrganizationName(tx, { orgId, displayName: display_name });
    }
    if (domains) await updateAutoJoinDomains(tx, { orgId, domains });
    return { result: await organizationReply(tx.db, orgId) };
  });
}

/** Ends an organization whose clusters are released. */
export function operatorRetireOrganization(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorRetireOrganization'>,
): Promise<CommandReply<BusinessReply<'operatorRetireOrganization'>>> {
  const orgId = request.path.orgID;
  const about = { target: orgId, organization_id: orgId };
  const what = { operation: 'operatorRetireOrganization', meaning: [orgId], about };
  return operatorCommand(deps, request, what, async (tx) => {
    await requireOrganization(tx.db, orgId);
    await retireOrganization(tx, orgId);
    return { result: await organizationReply(tx.db, orgId) };
  });
}

/** Every member of an organization with what they were granted, oldest membership first. */
export async function operatorListMembers(
  { store }: BusinessDeps,
  { caller, path, query }: BusinessRequest<'operatorListMembers'>,
): Promise<BusinessReply<'operatorListMembers'>> {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const { id } = await requireOrganization(store.read, path.orgID);
  const granted = await listAllGrantedPermissions(store.read, id);
  const email = query.email === undefined ? undefined : foldEmail(query.email);
  const members = (await listMembers(store.read, id)).filter(
    (one) => email === undefined || one.email === email,
  );
  return {
    members: members.map((member) => ({
      membership: membershipBody(member),
      permissions: granted.get(member.userId) ?? [],
    })),
  };
}

async function organizationReply(db: Reader, orgId: string) {
  const [summary] = await listOrganizations(db, orgId);
  if (!summary) throw new Error(`organization ${orgId} is gone`);
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
