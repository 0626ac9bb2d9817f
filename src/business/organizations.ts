/** Organizations, as their members see them. */
import { DomainError } from '../domain/error.ts';
import type { CommandReply } from '../domain/operation.ts';
import type { Organization } from '../domain/organization.ts';
import { runCommand } from '../store/commands.ts';
import type { Reader } from '../store/index.ts';
import { findMembership } from '../store/memberships.ts';
import * as organizations from '../store/organizations.ts';
import { findOrganization } from '../store/organizations.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';

/** An organization the caller belongs to; to anyone else it does not exist. */
export async function getOrganization(
  { store }: BusinessDeps,
  { caller, path, now }: BusinessRequest<'getOrganization'>,
): Promise<BusinessReply<'getOrganization'>> {
  const [organization, membership] = await Promise.all([
    findOrganization(store.read, path.orgID),
    findMembership(store.read, path.orgID, caller.userId, now),
  ]);
  if (!organization || !membership) throw organizationNotFound();
  return organizationBody(organization);
}

/** Ends an organization; only an owner may. */
export function retireOrganization(
  { store }: BusinessDeps,
  { caller, path, command, now }: BusinessRequest<'retireOrganization'>,
): Promise<CommandReply<BusinessReply<'retireOrganization'>>> {
  const organizationId = path.orgID;
  const about = { target: organizationId, organizationId };
  return runCommand(
    store,
    { caller, command, now },
    {
      operation: 'retireOrganization',
      meaning: [organizationId],
      about,
      async authorize(tx) {
        const membership = await findMembership(tx.db, organizationId, caller.userId, now);
        if (!membership) throw organizationNotFound();
        if (membership.role === 'owner') return;
        throw new DomainError('forbidden', 'Only an owner can retire the organization.');
      },
      async apply(tx) {
        await organizations.retireOrganization(tx, organizationId);
        return { result: organizationBody(await requireOrganization(tx.db, organizationId)) };
      },
    },
  );
}

/** The organization with this ID. Throws `not_found`. */
export async function requireOrganization(db: Reader, organizationId: string): Promise<Organization> {
  const organization = await findOrganization(db, organizationId);
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
