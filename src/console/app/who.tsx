/** Who is signed in, and the organization that the page is about. */
import { createContext, useContext } from 'react';
import type { components } from '../../api/business.ts';

export type Me = components['schemas']['Me'];
export type Membership = components['schemas']['Membership'];

export interface Who {
  me: Me;
  /** Undefined for who belongs to none. */
  membership: Membership | undefined;
  /** The organization's ID; empty for who belongs to none. */
  orgID: string;
  /** Owner or admin. */
  isManager: boolean;
  /** May set permissions of others. */
  isDecider: boolean;
  isStaff: boolean;
}

export const WhoContext = createContext<Who | undefined>(undefined);

export function useWho(): Who {
  const who = useContext(WhoContext);
  if (!who) throw new Error('outside of the frame');
  return who;
}

export function whoIs(me: Me, org: string | undefined): Who {
  const { memberships } = me;
  const membership =
    memberships.find(({ org_id: id }) => id === (org ?? me.default_org_id)) ?? memberships[0];
  return {
    me,
    membership,
    orgID: membership?.org_id ?? '',
    isManager: membership !== undefined && membership.role !== 'member',
    isDecider: false,
    isStaff: me.staff_keys.length > 0,
  };
}
