/** Members as a table, for people and for operators. */
import { listed, printer } from './answer.ts';

export interface MembershipRow {
  user_id: string;
  email: string;
  role: string;
  organization_username: { username: string };
}

export interface PermissionsRow {
  user_id: string;
  role: string;
  permissions: readonly string[];
}

export const membershipTable = printer<MembershipRow>(
  {
    EMAIL: (row) => row.email,
    ROLE: (row) => row.role,
    USERNAME: (row) => row.organization_username.username,
    ID: (row) => row.user_id,
  },
  'There are no members.',
);

/** With what they may do, as far as the row says it. */
export const memberTable = printer<MembershipRow & { permissions: readonly string[] }>(
  {
    EMAIL: (row) => row.email,
    ROLE: (row) => row.role,
    USERNAME: (row) => row.organization_username.username,
    PERMISSIONS: (row) => listed(row.permissions),
    ID: (row) => row.user_id,
  },
  'There are no such members.',
);

export const memberPermissions = printer<PermissionsRow>(
  { ROLE: (row) => row.role, PERMISSIONS: (row) => listed(row.permissions), ID: (row) => row.user_id },
  '',
);
