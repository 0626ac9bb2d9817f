/** The menu: its pages, in order, and whom each is for. */
import { holdsStaff, type Who } from './who.tsx';

export interface MenuItem {
  to: string;
  name: string;
  hint: string;
  isFor(who: Who): boolean;
}

const everyone = () => true;
const members = ({ membership }: Who) => membership !== undefined;

/** In the order of the menu. */
export const menu: readonly MenuItem[] = [
  { to: '/', name: 'Start', hint: 'Three steps to a shell', isFor: everyone },
  { to: '/access', name: 'My access', hint: 'Where you can log in, and why not', isFor: members },
  { to: '/keys', name: 'SSH keys', hint: 'Register and revoke keys', isFor: everyone },
  { to: '/clusters', name: 'Clusters', hint: 'Nodes, GPUs, storage', isFor: members },
  { to: '/members', name: 'Members', hint: 'Who has access to what', isFor: members },
  {
    to: '/requests',
    name: 'Requests',
    hint: 'Requests for access',
    isFor: ({ isDecider }) => isDecider,
  },
  {
    to: '/operator',
    name: 'Installation',
    hint: 'Clusters, and what needs attention',
    isFor: (who) => holdsStaff(who, 'staff.read'),
  },
  {
    to: '/who',
    name: 'Active sessions',
    hint: 'Active SSH sessions of everyone',
    isFor: (who) => holdsStaff(who, 'staff.read'),
  },
  {
    to: '/past',
    name: 'Ended sessions',
    hint: 'Ended SSH sessions',
    isFor: (who) => holdsStaff(who, 'staff.audit'),
  },
  { to: '/audit', name: 'Audit trail', hint: 'Who did what', isFor: (who) => holdsStaff(who, 'staff.audit') },
  { to: '/security', name: 'Sign-ins', hint: 'Browsers that you are signed in with', isFor: everyone },
];
