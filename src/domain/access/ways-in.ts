/** The ways in to a cluster: the role, each granted permission and each grant of a person. */
import { present } from '../present.ts';
import type { Grant } from './grant.ts';
import {
  type GrantedPermission,
  isPermissionKey,
  keysIncluding,
  type PermissionKey,
  type Role,
} from './permission.ts';

/** The same as `Side`; importing its file would pull modules into the console that browsers do not have. */
type Sides = readonly ('slurm' | 'kubernetes')[];

export interface WayIn {
  opens: 'see' | 'ssh' | 'ssh.admin' | 'kubernetes' | 'kubernetes.admin';
  by: 'role' | 'permission' | 'grant';
  /** The role, the permission, or the relation. */
  name: string;
  scope?: string;
  roleId?: string;
  grantId?: string;
  since: string;
  until?: string;
}

interface Membership {
  role: Role;
  granted: readonly GrantedPermission[];
  updatedAt: string;
}

/** The permission that each gate requires, and the name and permission of its admin level. */
const gates = [
  { opens: 'see', key: 'clusters.read', side: undefined },
  {
    opens: 'ssh',
    key: 'clusters.ssh',
    side: 'slurm',
    more: { opens: 'ssh.admin', key: 'clusters.ssh.admin' },
  },
  {
    opens: 'kubernetes',
    key: 'clusters.kubernetes',
    side: 'kubernetes',
    more: { opens: 'kubernetes.admin', key: 'clusters.kubernetes.admin' },
  },
] as const;

/** `membership` is undefined for a non-member. */
export function waysIn(sides: Sides, membership: Membership | undefined, grants: readonly Grant[]): WayIn[] {
  return [...(membership ? byMembership(sides, membership) : []), ...grants.map(byGrant)];
}

function byMembership(sides: Sides, { role, granted, updatedAt: since }: Membership): WayIn[] {
  return gates
    .filter(({ side }) => side === undefined || sides.includes(side))
    .flatMap((gate): WayIn[] => {
      const more = 'more' in gate ? gate.more : undefined;
      if (role !== 'member') return [{ opens: (more ?? gate).opens, by: 'role', name: role, since }];
      return granted
        .filter(({ key }) => includes(key, gate.key))
        .map(({ key, expiresAt }) => {
          const opens = more && includes(key, more.key) ? more.opens : gate.opens;
          return { opens, by: 'permission', name: key, since, ...present({ until: expiresAt }) };
        });
    });
}

function includes(key: string, wanted: PermissionKey): boolean {
  return isPermissionKey(key) && keysIncluding(wanted).includes(key);
}

function byGrant({ id, relation, scope, roleId, grantedAt, expiresAt }: Grant): WayIn {
  return {
    opens: relation === 'kubernetes.admin' ? 'kubernetes.admin' : 'kubernetes',
    by: 'grant',
    name: relation,
    grantId: id,
    since: grantedAt,
    ...present({ scope, roleId, until: expiresAt }),
  };
}

export function wayText({ by, name, scope }: Pick<WayIn, 'by' | 'name' | 'scope'>): string {
  if (by === 'role') return `as ${name}`;
  if (by === 'permission') return name;
  return `grant: ${name.replace('kubernetes.', '')}${scope === undefined ? '' : ` in ${scope}`}`;
}

export const opensText: Record<WayIn['opens'], string> = {
  see: 'see it',
  ssh: 'SSH',
  'ssh.admin': 'SSH, as administrator',
  kubernetes: 'Kubernetes',
  'kubernetes.admin': 'Kubernetes, as cluster-admin',
};
