/** Who is signed in, and the organization that the page is about. */
import { createContext, useContext } from 'react';
import type { components } from '../../api/generated/business.ts';
import { effectivePermissions } from '../../domain/access/permission.ts';

export type Me = components['schemas']['Me'];
export type Membership = components['schemas']['Membership'];

export interface Who {
  me: Me;
  membership: Membership | undefined;
  orgID: string;
  permissions: ReadonlySet<string>;
  /** Whether there may be a cluster of it that they see. */
  seesClusters: boolean;
  isManager: boolean;
  isDecider: boolean;
}

export const WhoContext = createContext<Who | undefined>(undefined);

export function useWho(): Who {
  const who = useContext(WhoContext);
  if (!who) throw new Error('outside of the frame');
  return who;
}

/** The membership that a page is about; undefined for a person in no organization. */
export function membershipIn({ memberships, default_org_id: usual }: Me, org: string | undefined) {
  return memberships.find(({ org_id: id }) => id === (org ?? usual)) ?? memberships[0];
}

/** `granted`: what a member was granted; `reaches`: whether they hold a grant on a cluster. */
export function whoIs(
  me: Me,
  membership: Membership | undefined,
  granted: readonly string[],
  reaches: boolean,
): Who {
  const permissions = membership ? effectivePermissions(membership.role, granted) : new Set<string>();
  const who = {
    me,
    membership,
    orgID: membership?.org_id ?? '',
    permissions,
    isManager: membership !== undefined && membership.role !== 'member',
    isDecider: permissions.has('members.manage'),
  };
  const seesAll = permissions.has('clusters.read') || holdsStaff(who, 'staff.read');
  return { ...who, seesClusters: membership !== undefined && (seesAll || reaches) };
}

type StaffKey = Me['staff_keys'][number];

/** Whether the person holds the key, by itself or within `staff.operate`. The APIs decide; this spares a dead end. */
export function holdsStaff({ me: { staff_keys: held } }: Pick<Who, 'me'>, key: StaffKey): boolean {
  return held.includes(key) || held.includes('staff.operate');
}
