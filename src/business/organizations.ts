/** Organizations, as their members see them. */
import { DomainError } from '../domain/error.ts';
import type { Reader } from '../store/index.ts';
import { findMembership } from '../store/members.ts';
import { findOrganization, type Organization } from '../store/organizations.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './index.ts';

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
  return organization;
}

/** The organization with this ID. Throws `not_found`. */
export async function requireOrganization(db: Reader, orgId: string): Promise<Organization> {
  const organization = await findOrganization(db, orgId);
  if (!organization) throw new DomainError('not_found', 'There is no such organization.');
  return organization;
}

export function organizationNotFound(): DomainError {
  return new DomainError('not_found', 'There is no such organization, or you are not a member of it.');
}
