/** The signed-in person. */
import { DomainError } from '../domain/error.ts';
import type { Membership } from '../domain/membership.ts';
import { listMembershipsOf } from '../store/memberships.ts';
import { findPerson } from '../store/people.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from './operation.ts';

/** The caller, their memberships, and the organization to assume when there is only one to choose. */
export async function getMe(
  { store }: BusinessDeps,
  { caller }: BusinessRequest<'getMe'>,
): Promise<BusinessReply<'getMe'>> {
  const [user, memberships] = await Promise.all([
    findPerson(store.read, caller.userId),
    listMembershipsOf(store.read, caller.userId),
  ]);
  if (!user) throw new DomainError('unauthorized', 'There is no account for this sign-in.');
  const [only, another] = memberships;
  return {
    user: {
      id: user.id,
      primary_email: user.email,
      display_name: user.displayName,
      ...(user.preferredUsername === null ? {} : { preferred_username: user.preferredUsername }),
      login_shell: user.loginShell,
      lifecycle_state: 'active',
      created_at: user.createdAt,
      updated_at: user.updatedAt,
    },
    memberships: memberships.map(membershipBody),
    ...(only && !another ? { default_org_id: only.organizationId } : {}),
    staff_keys: user.staffKeys,
  };
}

/** A membership as the API shows it. */
export function membershipBody(membership: Membership) {
  const { username } = membership;
  return {
    org_id: membership.organizationId,
    user_id: membership.userId,
    email: membership.email,
    role: membership.role,
    lifecycle_state: membership.lifecycleState,
    created_at: membership.createdAt,
    updated_at: membership.updatedAt,
    organization_username: {
      id: username.id,
      username: username.username,
      source: username.source,
      lifecycle_state: username.lifecycleState,
      created_at: username.createdAt,
      org_id: membership.organizationId,
      user_id: membership.userId,
      ...(username.frozenAt === null ? {} : { frozen_at: username.frozenAt }),
    },
  };
}
