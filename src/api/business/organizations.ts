/** Organizations, and what a caller may do in one: as a member of it, or as staff of the installation. */
import { effectivePermissions, type GrantedPermission, type Role } from '../../domain/access/permission.ts';
import { forbidden, notFound } from '../../domain/error.ts';
import type { Organization } from '../../domain/organizations/membership.ts';
import { holdsStaffKey, type StaffKey } from '../../domain/people/person.ts';
import { snakeCased } from '../../domain/present.ts';
import { runCommand } from '../../store/audit/commands.ts';
import type { Reader } from '../../store/engine/index.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import * as organizations from '../../store/organizations/organizations.ts';
import { findOrganization } from '../../store/organizations/organizations.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import type { Operation } from './operation.ts';

/** An organization the caller belongs to; to anyone else it does not exist. */
export const getOrganization: Operation<'getOrganization'> = async ({ store }, { caller, path, now }) => {
  await ownMembership(store.read, path.orgID, caller.userId, now);
  return organizationBody(await requireOrganization(store.read, path.orgID));
};

export const retireOrganization: Operation<'retireOrganization'> = ({ store }, request) => {
  const organizationId = request.path.orgID;
  const about = { target: organizationId, organizationId };
  return runCommand(store, request, {
    operation: 'retireOrganization',
    meaning: [organizationId],
    about,
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
  });
};

interface Standing {
  role: Role;
  permissions: ReadonlySet<string>;
  granted: readonly GrantedPermission[];
}

/** Staff may do here what an owner may. */
const ofStaff: Standing = { role: 'owner', permissions: effectivePermissions('owner', []), granted: [] };

/**
 * The caller's membership where that is `enough`, otherwise what an owner has for a caller with the staff key, otherwise the
 * membership, which the route refuses. Throws `not_found` for callers with neither.
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

/** The caller's membership. Throws `not_found` for anyone else: for them there is no such organization. */
export async function ownMembership(db: Reader, organizationId: string, userId: string, now: number) {
  const own = await findMembership(db, organizationId, userId, now);
  if (own) return own;
  throw notFound('There is no such organization, or you are not a member of it.');
}

export async function requireOrganization(db: Reader, organizationId: string): Promise<Organization> {
  const organization = await findOrganization(db, organizationId);
  if (!organization) throw notFound('There is no such organization.');
  return organization;
}

export function organizationBody(organization: Organization) {
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
