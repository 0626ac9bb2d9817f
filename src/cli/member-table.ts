/** Members as a table, for people and for operators. */

import { listed, printer } from './answer.ts';
import type { Business } from './net/operations.ts';

type Membership = Business['Membership'];

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
export const memberTable = printer<Membership & { permissions: readonly string[] }>(
  {
    EMAIL: (row) => row.email,
    ROLE: (row) => row.role,
    USERNAME: (row) => row.organization_username.username,
    PERMISSIONS: (row) => listed(row.permissions),
    ID: (row) => row.user_id,
  },
  'There are no such members.',
);

export const memberPermissions = printer<Business['MemberPermissions']>(
  { ROLE: (row) => row.role, PERMISSIONS: (row) => listed(row.permissions), ID: (row) => row.user_id },
  '',
);

/** Whether a member's permissions are in force, by cluster. */
export const kubernetesAccess = printer<Business['MemberKubernetesAccess']>(
  { CLUSTER: (row) => row.cluster_name, KUBERNETES: (row) => row.state, MESSAGE: (row) => row.message },
  'There are no Kubernetes clusters.',
);
