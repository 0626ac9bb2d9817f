/** The pages: what each is called, whom it is for, and why a person may not see one. */
import {
  Activity,
  Boxes,
  Cpu,
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
import { holdsStaff, type Who } from './reads.ts';

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

function item(to: string, name: string, hint: string, icon: LucideIcon): MenuItem {
  return { to, name, hint, icon };
}

const start = item('/', 'Start', 'Three steps to a shell', House);
const access = item('/access', 'Access', 'Where you can log in, and why not', LogIn);
const keys = item('/keys', 'Keys', 'Register and revoke SSH keys', KeyRound);
const sessionsHint = 'Your SSH sessions, and the browsers that you are signed in with';
const ownSessions = item('/security', 'Sessions', sessionsHint, SquareTerminal);
const members = item('/members', 'Members', 'Who has access to what', Users);
const requests = item('/requests', 'Requests', 'Requests for access', Inbox);
const clusters = item('/clusters', 'Clusters', 'Nodes, GPUs, storage', Boxes);
const gpus = item('/gpus', 'GPUs', 'Free, in use, unavailable', Cpu);
const active = item('/who', 'Active sessions', 'Active SSH sessions of everyone', Activity);
const ended = item('/past', 'Ended sessions', 'Ended SSH sessions', History);
const audit = item('/audit', 'Audit', 'Who did what', ScrollText);
const operations = [
  item('/operator', 'Overview', 'State of the clusters, what needs attention', LayoutDashboard),
  item('/operator/machines', 'Machines', 'Admit, quarantine', Server),
  item('/storage', 'Storage', 'Volumes and quotas of every cluster', HardDrive),
  item('/operator/people', 'People', 'Accounts, identities, staff keys', UserCog),
  item('/operator/service', 'Keys and backups', 'Keys and backups of the service', Vault),
];

/** Who holds the staff key sees these. */
const staffPages = { 'staff.read': [active, ...operations], 'staff.audit': [ended, audit] } as const;

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
  for (const key of ['staff.read', 'staff.audit'] as const) {
    const staff = staffPages[key].find(({ to }) => to === path);
    if (staff && !holdsStaff(who, key))
      return { title: staff.name, why: `This page is for operators with the staff key ${key}.` };
  }
  const page = memberPages.find((one) => one.path.test(path));
  if (!page) return undefined;
  const { name: title, key, isOfPeople } = page;
  if (!who.membership) return { title, why: 'You are not in an organization yet. Ask an owner to add you.' };
  if (key === undefined || who.permissions.has(key)) return undefined;
  const ids = (page.path.exec(path)?.[1] ?? people).split(',');
  if (isOfPeople && ids.every((id) => id === '' || id === who.me.user.id)) return undefined;
  return { title, why: `This page needs the permission ${key}. Request it on “Access”.` };
}
