/** Organizations, as their members see them. */
import { DomainError } from '../domain/error.ts';
import type { CommandReply } from '../domain/operation.ts';
import type { Organization } from '../domain/organization.ts';
import { runCommand } from '../store/commands.ts';
import type { Reader } from '../store/index.ts';
import { findMembership } from '../store/members.ts';
import * as organizations from '../store/organizations.ts';
import { findOrganization } from '../store/organizations.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';

/** An organization the caller belongs to; to anyone else it does not exist. */
export async function getOrganization(
  { store }: BusinessDeps,
  { caller, path }: BusinessRequest<'getOrganization'>,
): Promise<BusinessReply<'getOrganization'>> {
  const [organization, membership] = await Promise.all([
    findOrganization(store.read, path.orgID),
    findMembership(store.read, path.orgID, caller.userId),
  ]);
  if (!organization || !membership) throw organizationNotFound();
  return organizationBody(organization);
}

/** Ends an organization; only an owner may. */
export function retireOrganization(
  { store }: BusinessDeps,
  { caller, path, command, now }: BusinessRequest<'retireOrganization'>,
): Promise<CommandReply<BusinessReply<'retireOrganization'>>> {
  const orgId = path.orgID;
  const about = { target: orgId, organization_id: orgId };
  return runCommand(
    store,
    { operation: 'retireOrganization', headers: command, caller, request: [orgId], about, now },
    {
      async authorize(tx) {
        const membership = await findMembership(tx.db, orgId, caller.userId);
        if (!membership) throw organizationNotFound();
        if (membership.role === 'owner') return;
        throw new DomainError('forbidden', 'Only an owner can retire the organization.');
      },
      async apply(tx) {
        await organizations.retireOrganization(tx, orgId);
        return { result: organizationBody(await requireOrganization(tx.db, orgId)) };
      },
    },
  );
}

/** The organization with this ID. Throws `not_found`. */
export async function requireOrganization(db: Reader, orgId: string): Promise<Organization> {
  const organization = await findOrganization(db, orgId);
  if (!organization) throw new DomainError('not_found', 'There is no such organization.');
  return organization;
}

/** An organization as the API shows it. */
export function organizationBody(organization: Organization) {
  return {
    id: organization.id,
    slug: organization.slug,
    display_name: organization.displayName,
    lifecycle_state: organization.lifecycleState,
    created_by_user_id: organization.createdByUserId,
    created_at: organization.createdAt,
    updated_at: organization.updatedAt,
  };
}

export function organizationNotFound(): DomainError {
  return new DomainError('not_found', 'There is no such organization, or you are not a member of it.');
}
