/** The menu: three groups at the side; on a narrow screen a bar at the bottom, and the rest in a sheet above it. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Ellipsis } from 'lucide-react';
import { barOf, type MenuGroup, type MenuItem } from '../menu.ts';
import { readRequests } from '../reads.ts';
import { useWho } from '../who.tsx';
import { Button } from './controls.tsx';

/** Of the sheet, which is the side on a wide screen. */
export const sheetId = 'menu';

export function Menu({ groups }: { groups: readonly MenuGroup[] }) {
  return (
    <nav aria-label="Pages">
      {groups.map(({ name, items }) => (
        <section key={name} aria-labelledby={`menu-${name}`}>
          <h2 id={`menu-${name}`}>{name}</h2>
          {items.map((item) => (
            <Item key={item.to} item={item} />
          ))}
        </section>
      ))}
    </nav>
  );
}

/** Three pages and the way to all others. Only a narrow screen shows it. */
export function BottomBar({ groups }: { groups: readonly MenuGroup[] }) {
  return (
    <nav aria-label="Main pages" className="bottom">
      {barOf(groups).map((item) => (
        <Item key={item.to} item={item} />
      ))}
      <Button popoverTarget={sheetId}>
        <Ellipsis aria-hidden="true" />
        More
      </Button>
    </nav>
  );
}

/** Pages that have pages of their own in the menu are current only by themselves. */
const exact = ['/', '/operator'];

function Item({ item: { to, name, icon: Icon } }: { item: MenuItem }) {
  return (
    <Link
      to={to}
      activeOptions={{ exact: exact.includes(to), includeSearch: false }}
      activeProps={{ 'aria-current': 'page' }}
      onClick={() => document.getElementById(sheetId)?.hidePopover()}
    >
      <Icon aria-hidden="true" />
      {name}
      {to === '/requests' && <Waiting />}
    </Link>
  );
}

/** How many requests wait for a decision. */
function Waiting() {
  const { orgID, isDecider } = useWho();
  const waiting = useQuery({ ...readRequests(orgID, 'open'), enabled: isDecider });
  const count = waiting.data?.requests.length ?? 0;
  if (count === 0) return null;
  return (
    <span className="count">
      {count}
      <span className="hidden"> pending</span>
    </span>
  );
}
