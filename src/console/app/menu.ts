/** The pages: their names, their order in the menu, and the permissions that they need. */
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

/** The requirement of a page: a membership, a permission in the organization, or a staff key. */
type Need = 'membership' | PermissionKey | 'staff.read' | 'staff.audit';

interface PageAccess {
  /** The path of its route. */
  to: string;
  name: string;
  needs?: Need;
}

export interface MenuItem extends PageAccess {
  icon: LucideIcon;
}

function item(to: string, name: string, icon: LucideIcon, needs?: Need): MenuItem {
  return { to, name, icon, ...(needs && { needs }) };
}

const groups = [
  {
    name: 'Me',
    items: [
      item('/', 'Start', House),
      item('/access', 'Access', LogIn),
      item('/keys', 'Keys', KeyRound),
      item('/security', 'Sessions', SquareTerminal),
    ],
  },
  {
    name: 'Lab',
    items: [
      item('/members', 'Members', Users, 'membership'),
      item('/requests', 'Requests', Inbox, 'members.manage'),
      item('/clusters', 'Clusters', Boxes, 'membership'),
      item('/gpus', 'GPUs', Cpu, 'membership'),
      item('/who', 'Active sessions', Activity, 'staff.read'),
      item('/past', 'Ended sessions', History, 'staff.audit'),
      item('/audit', 'Audit', ScrollText, 'staff.audit'),
    ],
  },
  {
    name: 'Operations',
    items: [
      item('/operator', 'Overview', LayoutDashboard, 'staff.read'),
      item('/operator/machines', 'Machines', Server, 'staff.read'),
      item('/storage', 'Storage', HardDrive, 'staff.read'),
      item('/operator/people', 'People', UserCog, 'staff.read'),
      item('/operator/service', 'Keys and backups', Vault, 'staff.read'),
    ],
  },
];

export type MenuGroup = (typeof groups)[number];

/** The menu of a person, in order. */
export function menuOf(who: Who): MenuGroup[] {
  return groups
    .map(({ name, items }) => ({ name, items: items.filter(({ needs }) => holds(who, needs)) }))
    .filter(({ items }) => items.length > 0);
}

/** A phone's bar has the first three of these that the person's menu has; a touch opens the rest. */
const usualOnPhones = ['/', '/access', '/operator', '/requests', '/keys'];

export function barOf(menu: readonly MenuGroup[]): MenuItem[] {
  const all = menu.flatMap(({ items }) => items);
  return usualOnPhones.flatMap((path) => all.find(({ to }) => to === path) ?? []).slice(0, 3);
}

const pages: readonly PageAccess[] = [
  ...groups.flatMap(({ items }) => items),
  { to: '/clusters/$clusterId', name: 'Cluster', needs: 'membership' },
  { to: '/clusters/$clusterId/slurm', name: 'Slurm configuration', needs: 'clusters.configure' },
  { to: '/clusters/$clusterId/people', name: 'Access to the cluster', needs: 'members.manage' },
  { to: '/members/change', name: 'Progress', needs: 'members.manage' },
  { to: '/members/$userId', name: 'Person', needs: 'members.manage' },
];

/**
 * The reason why a person may not see the page of a route; undefined where they may. `people`: the IDs of the people that the
 * page is about, who may see it about themselves. This spares requests that the APIs, which decide, would refuse.
 */
export function refusalOf(
  path: string,
  people: string,
  who: Who,
): { title: string; why: string } | undefined {
  const { name: title, needs } = pages.find(({ to }) => to === path) ?? {};
  if (title === undefined || holds(who, needs)) return undefined;
  if (needs === 'staff.read' || needs === 'staff.audit')
    return { title, why: `This page is for operators with the staff key ${needs}.` };
  if (!who.membership) return { title, why: 'You are not in an organization yet. Ask an owner to add you.' };
  const isOwn = people.split(',').every((id) => id === '' || id === who.me.user.id);
  if (path.startsWith('/members/') && isOwn) return undefined;
  return { title, why: `This page needs the permission ${needs}. Request it on “Access”.` };
}

function holds(who: Who, need: Need | undefined): boolean {
  if (need === undefined) return true;
  if (need === 'staff.read' || need === 'staff.audit') return holdsStaff(who, need);
  return who.membership !== undefined && (need === 'membership' || who.permissions.has(need));
}
