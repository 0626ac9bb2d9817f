/** The pages: what each is called, whom it is for, and why a person may not see one. */
import type { PermissionKey } from '../../domain/access/permission.ts';
import { holdsStaff, type Who } from './who.tsx';

export interface MenuItem {
  to: string;
  name: string;
  hint: string;
}

interface StaffPage extends MenuItem {
  key: 'staff.read' | 'staff.audit';
}

/** Below "Installation", in the order of their menu. */
export const installationPages: readonly MenuItem[] = [
  { to: '/operator', name: 'Overview', hint: 'State of the clusters, what needs attention' },
  { to: '/operator/machines', name: 'Machines', hint: 'Admit, quarantine' },
  { to: '/operator/people', name: 'People and staff', hint: 'Accounts, identities, staff keys' },
  { to: '/operator/lab', name: 'Lab file', hint: 'Plan and apply' },
  { to: '/operator/service', name: 'Keys and backups', hint: 'Keys and backups of the service' },
];

const staffPages: readonly StaffPage[] = [
  { to: '/operator', name: 'Installation', hint: 'Clusters, and what needs attention', key: 'staff.read' },
  { to: '/who', name: 'Active sessions', hint: 'Active SSH sessions of everyone', key: 'staff.read' },
  { to: '/past', name: 'Ended sessions', hint: 'Ended SSH sessions', key: 'staff.audit' },
  { to: '/audit', name: 'Audit trail', hint: 'Who did what', key: 'staff.audit' },
];

const start = { to: '/', name: 'Start', hint: 'Three steps to a shell' };
const access = { to: '/access', name: 'My access', hint: 'Where you can log in, and why not' };
const keys = { to: '/keys', name: 'SSH keys', hint: 'Register and revoke keys' };
const clusters = { to: '/clusters', name: 'Clusters', hint: 'Nodes, GPUs, storage' };
const members = { to: '/members', name: 'Members', hint: 'Who has access to what' };
const requests = { to: '/requests', name: 'Requests', hint: 'Requests for access' };
const security = { to: '/security', name: 'Sign-ins', hint: 'Browsers that you are signed in with' };

/** The menu of a person, in order. */
export function menuOf(who: Who): MenuItem[] {
  return [
    ...(who.membership ? [start, access, keys, clusters, members] : [start, keys]),
    ...(who.isDecider ? [requests] : []),
    ...staffPages.filter(({ key }) => holdsStaff(who, key)),
    security,
  ];
}

interface MemberPage {
  path: RegExp;
  name: string;
  /** Left out: every member may. */
  key?: PermissionKey;
  /** It is about people, and each person may see it about themselves. */
  isOfPeople?: boolean;
}

/** The first that fits. */
const memberPages: MemberPage[] = [
  { path: /^\/access$/, name: 'My access' },
  { path: /^\/requests$/, name: 'Requests', key: 'members.manage' },
  { path: /^\/clusters\/[^/]+\/slurm$/, name: 'Slurm configuration', key: 'clusters.configure' },
  { path: /^\/clusters\/[^/]+\/people$/, name: 'Access to the cluster', key: 'members.manage' },
  { path: /^\/clusters(\/|$)/, name: 'Clusters' },
  { path: /^\/members$/, name: 'Members' },
  { path: /^\/members\/change$/, name: 'Change progress', key: 'members.manage', isOfPeople: true },
  { path: /^\/members\/([^/]+)$/, name: 'Person', key: 'members.manage', isOfPeople: true },
];

/**
 * Why a person may not see the page at an address, whose search names `people`; undefined where they may. What would be refused is
 * not asked for; the APIs decide all the same.
 */
export function refusalOf(
  pathname: string,
  people: string,
  who: Who,
): { title: string; why: string } | undefined {
  const path = pathname.replace(/(.)\/$/, '$1');
  const staff = [...staffPages, ...installationPages].find(({ to }) => to === path);
  const { key: staffKey = 'staff.read' } = (staff ?? {}) as Partial<StaffPage>;
  if (staff && !holdsStaff(who, staffKey))
    return { title: staff.name, why: `This page is for operators with the staff key ${staffKey}.` };
  const page = memberPages.find((one) => one.path.test(path));
  if (!page) return undefined;
  const { name: title, key, isOfPeople } = page;
  if (!who.membership) return { title, why: 'You are not in an organization yet. Ask an owner to add you.' };
  if (key === undefined || who.permissions.has(key)) return undefined;
  const ids = (page.path.exec(path)?.[1] ?? people).split(',');
  if (isOfPeople && ids.every((id) => id === '' || id === who.me.user.id)) return undefined;
  return { title, why: `This page needs the permission ${key}. Request it on “My access”.` };
}
