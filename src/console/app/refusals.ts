/**
 * Pages that a person may not see, and why: what would be refused is not asked for. The APIs decide all the same; this is what
 * the console knows of it already.
 */
import type { PermissionKey } from '../../domain/access/permission.ts';
import { installationPages } from './installation.ts';
import { holdsStaff, type Who } from './who.tsx';

export interface Refusal {
  title: string;
  why: string;
}

interface OperatorPage {
  path: string;
  title: string;
  key: 'staff.read' | 'staff.audit';
}

const operatorPages: OperatorPage[] = [
  ...installationPages.map(({ to: path, name }) => ({
    path,
    title: path === '/operator' ? 'Installation' : name,
    key: 'staff.read' as const,
  })),
  { path: '/who', title: 'Active sessions', key: 'staff.read' },
  { path: '/past', title: 'Ended sessions', key: 'staff.audit' },
  { path: '/audit', title: 'Audit trail', key: 'staff.audit' },
];

interface MemberPage {
  path: RegExp;
  title: string;
  /** Left out: every member may. */
  key?: PermissionKey;
  /** What it is about is people, and everybody may see it of themselves. */
  isOfPeople?: boolean;
}

/** The first that fits. */
const memberPages: MemberPage[] = [
  { path: /^\/access$/, title: 'My access' },
  { path: /^\/requests$/, title: 'Requests', key: 'members.manage' },
  { path: /^\/clusters\/[^/]+\/slurm$/, title: 'Slurm configuration', key: 'clusters.configure' },
  { path: /^\/clusters\/[^/]+\/people$/, title: 'Access to the cluster', key: 'members.manage' },
  { path: /^\/clusters(\/|$)/, title: 'Clusters' },
  { path: /^\/members$/, title: 'Members' },
  { path: /^\/members\/change$/, title: 'Change progress', key: 'members.manage', isOfPeople: true },
  { path: /^\/members\/([^/]+)$/, title: 'Person', key: 'members.manage', isOfPeople: true },
];

/** Why a person may not see the page at an address, whose search names `people`; undefined where they may. */
export function refusalOf(pathname: string, people: string, who: Who): Refusal | undefined {
  const path = pathname.replace(/(.)\/$/, '$1');
  const operators = operatorPages.find((one) => one.path === path);
  if (operators && !holdsStaff(who, operators.key))
    return refused(operators, `This page is for operators with the staff key ${operators.key}.`);
  const page = memberPages.find((one) => one.path.test(path));
  if (!page) return undefined;
  if (!who.membership) return refused(page, 'You are not in an organization yet. Ask an owner to add you.');
  const { key, isOfPeople } = page;
  if (key === undefined || who.permissions.has(key)) return undefined;
  const ids = (page.path.exec(path)?.[1] ?? people).split(',');
  if (isOfPeople && ids.every((id) => id === '' || id === who.me.user.id)) return undefined;
  return refused(page, `This page needs the permission ${key}. Request it on “My access”.`);
}

function refused({ title }: { title: string }, why: string): Refusal {
  return { title, why };
}
