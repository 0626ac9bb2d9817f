/** Members as a table, for people and for operators. */

import { listed, printer } from './answer.ts';
import type { Business } from './net/operations.ts';

type Membership = Business['Membership'];
type Granted = Pick<Business['MemberPermissions'], 'permissions' | 'expires_at'>;

/** Keys, and until when those are held that have an end. */
function grantedOf({ permissions, expires_at: ends = {} }: Granted): string {
  return listed(permissions.map((key) => (ends[key] === undefined ? key : `${key} until ${ends[key]}`)));
}

export const membershipTable = printer<Membership>(
  {
    EMAIL: (row) => row.email,
    ROLE: (row) => row.role,
    USERNAME: (row) => row.organization_username.username,
    ID: (row) => row.user_id,
  },
  'There are no members.',
);

/** With what they may do, where the row has it. */
export const memberTable = printer<Membership & Granted>(
  {
    EMAIL: (row) => row.email,
    ROLE: (row) => row.role,
    USERNAME: (row) => row.organization_username.username,
    PERMISSIONS: grantedOf,
    ID: (row) => row.user_id,
  },
  'There are no such members.',
);

export const memberPermissions = printer<Business['MemberPermissions']>(
  { ROLE: (row) => row.role, PERMISSIONS: grantedOf, ID: (row) => row.user_id },
  '',
);

/** Whether a member's permissions are in force, by cluster. */
export const kubernetesAccess = printer<Business['MemberKubernetesAccess']>(
  { CLUSTER: (row) => row.cluster_name, KUBERNETES: (row) => row.state, MESSAGE: (row) => row.message },
  'There are no Kubernetes clusters.',
);
