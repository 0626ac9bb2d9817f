/** The pages: what each is called, whom it is for, and why a person may not see one. */
import {
  Activity,
  Boxes,
  Cpu,
  FileCode,
  HardDrive,
  History,
  House,
  Inbox,
  KeyRound,
  LayoutDashboard,
  LogIn,
  type LucideIcon,
  ScrollText,
  Server,
  SquareTerminal,
  UserCog,
  Users,
  Vault,
} from 'lucide-react';
import type { PermissionKey } from '../../domain/access/permission.ts';
import { holdsStaff, type Who } from './who.tsx';

export interface MenuItem {
  to: string;
  name: string;
  hint: string;
  icon: LucideIcon;
}

export interface MenuGroup {
  name: string;
  items: MenuItem[];
}

interface StaffPage extends MenuItem {
  /** Left out: `staff.read`. */
  key?: 'staff.audit';
}

const start = { to: '/', name: 'Start', hint: 'Three steps to a shell', icon: House };
const access = { to: '/access', name: 'Access', hint: 'Where you can log in, and why not', icon: LogIn };
const keys = { to: '/keys', name: 'Keys', hint: 'Register and revoke SSH keys', icon: KeyRound };
const ownSessions = {
  to: '/security',
  name: 'Sessions',
  hint: 'Your SSH sessions, and the browsers that you are signed in with',
  icon: SquareTerminal,
};
const members = { to: '/members', name: 'Members', hint: 'Who has access to what', icon: Users };
const requests = { to: '/requests', name: 'Requests', hint: 'Requests for access', icon: Inbox };
const clusters = { to: '/clusters', name: 'Clusters', hint: 'Nodes, GPUs, storage', icon: Boxes };
const gpus = { to: '/gpus', name: 'GPUs', hint: 'Free, in use, unavailable', icon: Cpu };

const active = {
  to: '/who',
  name: 'Active sessions',
  hint: 'Active SSH sessions of everyone',
  icon: Activity,
};
const ended: StaffPage = {
  to: '/past',
  name: 'Ended sessions',
  hint: 'Ended SSH sessions',
  icon: History,
  key: 'staff.audit',
};
const audit: StaffPage = {
  to: '/audit',
  name: 'Audit',
  hint: 'Who did what',
  icon: ScrollText,
  key: 'staff.audit',
};

const operations: MenuItem[] = [
  {
    to: '/operator',
    name: 'Overview',
    hint: 'State of the clusters, what needs attention',
    icon: LayoutDashboard,
  },
  { to: '/operator/machines', name: 'Machines', hint: 'Admit, quarantine', icon: Server },
  { to: '/storage', name: 'Storage', hint: 'Volumes and quotas of every cluster', icon: HardDrive },
  { to: '/operator/people', name: 'People', hint: 'Accounts, identities, staff keys', icon: UserCog },
  { to: '/operator/lab', name: 'Lab file', hint: 'Plan and apply', icon: FileCode },
  {
    to: '/operator/service',
    name: 'Keys and backups',
    hint: 'Keys and backups of the service',
    icon: Vault,
  },
];

const staffPages: readonly StaffPage[] = [active, ended, audit, ...operations];

/** The menu of a person, in order. Ended sessions are reached from the active ones by who may see both. */
export function menuOf(who: Who): MenuGroup[] {
  const reads = holdsStaff(who, 'staff.read');
  const audits = holdsStaff(who, 'staff.audit');
  const groups = [
    { name: 'Me', items: [start, access, keys, ownSessions] },
    {
      name: 'Lab',
      items: [
        ...(who.membership ? [members] : []),
        ...(who.isDecider ? [requests] : []),
        ...(who.membership ? [clusters, gpus] : []),
        ...(reads ? [active] : audits ? [ended] : []),
        ...(audits ? [audit] : []),
      ],
    },
    { name: 'Operations', items: reads ? operations : [] },
  ];
  return groups.filter(({ items }) => items.length > 0);
}

/** What of the menu stands in the bar of a phone, the first of these that are in it; the rest is a touch away. */
const usualOnPhones = ['/', '/access', '/operator', '/requests', '/keys'];

export function barOf(groups: readonly MenuGroup[]): MenuItem[] {
  const all = groups.flatMap(({ items }) => items);
  return usualOnPhones.flatMap((path) => all.find(({ to }) => to === path) ?? []).slice(0, 3);
}

/** What a person may see that the menu leaves to other pages. */
export function beyondMenu(who: Who): MenuItem[] {
  return holdsStaff(who, 'staff.read') && holdsStaff(who, 'staff.audit') ? [ended] : [];
}

interface MemberPage {
  path: RegExp;
  name: string;
  key?: PermissionKey;
  /** It is about people, and each person may see it about themselves. */
  isOfPeople?: boolean;
}

const memberPages: MemberPage[] = [
  { path: /^\/requests$/, name: 'Requests', key: 'members.manage' },
  { path: /^\/clusters\/[^/]+\/slurm$/, name: 'Slurm configuration', key: 'clusters.configure' },
  { path: /^\/clusters\/[^/]+\/people$/, name: 'Access to the cluster', key: 'members.manage' },
  { path: /^\/clusters(\/|$)/, name: 'Clusters' },
  { path: /^\/gpus$/, name: 'GPUs' },
  { path: /^\/members$/, name: 'Members' },
  { path: /^\/members\/change$/, name: 'Progress', key: 'members.manage', isOfPeople: true },
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
  const staff = staffPages.find(({ to }) => to === path);
  const staffKey = staff?.key ?? 'staff.read';
  if (staff && !holdsStaff(who, staffKey))
    return { title: staff.name, why: `This page is for operators with the staff key ${staffKey}.` };
  const page = memberPages.find((one) => one.path.test(path));
  if (!page) return undefined;
  const { name: title, key, isOfPeople } = page;
  if (!who.membership) return { title, why: 'You are not in an organization yet. Ask an owner to add you.' };
  if (key === undefined || who.permissions.has(key)) return undefined;
  const ids = (page.path.exec(path)?.[1] ?? people).split(',');
  if (isOfPeople && ids.every((id) => id === '' || id === who.me.user.id)) return undefined;
  return { title, why: `This page needs the permission ${key}. Request it on “Access”.` };
}
