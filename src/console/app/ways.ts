/** The ways of many people to a cluster, of the lists that the APIs give of all of them. */
import type { components } from '../../api/generated/business.ts';
import { type WayIn, waysIn } from '../../domain/access/ways-in.ts';
import type { Grant, Way } from './people.ts';

type Membership = Pick<components['schemas']['Membership'], 'user_id'> &
  Partial<Pick<components['schemas']['Membership'], 'role' | 'updated_at'>>;

type Granted = components['schemas']['MemberPermissions'];

/** Of a member, or (without a role) of a person who only holds grants. */
export function waysOf(
  sides: { slurm: boolean; kubernetes: boolean },
  { user_id: userId, role, updated_at: updatedAt = '' }: Membership,
  { permissions, expires_at: ends = {} }: Partial<Pick<Granted, 'permissions' | 'expires_at'>>,
  grants: readonly Grant[],
): Way[] {
  const own = grants.filter(({ grant }) => grant.user_id === userId);
  const there = (['slurm', 'kubernetes'] as const).filter((side) => sides[side]);
  const granted = (permissions ?? []).map((key) => ({ key, expiresAt: ends[key] ?? null }));
  const ways = waysIn(there, role && { role, granted, updatedAt }, own.map(grantOf));
  return ways.map(wayOf);
}

function wayOf({ roleId, grantId, ...way }: WayIn): Way {
  return {
    ...way,
    ...(roleId !== undefined && { role_id: roleId }),
    ...(grantId !== undefined && { grant_id: grantId }),
  };
}

function grantOf({ grant, cluster_name: clusterName }: Grant) {
  return {
    id: grant.id,
    clusterId: grant.resource_id,
    clusterName,
    userId: grant.user_id,
    email: grant.username,
    relation: grant.relation,
    scope: grant.scope ?? null,
    roleId: grant.role_id ?? null,
    expiresAt: grant.expires_at ?? null,
    grantedBy: grant.granted_by,
    grantedAt: grant.granted_at,
  };
}
