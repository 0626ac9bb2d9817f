/** The menu: groups at the side; on a narrow screen a bar at the bottom, and a sheet above it for the rest. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Ellipsis } from 'lucide-react';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { barOf, type MenuGroup, type MenuItem } from '../menu.ts';
import { readRequests, useWho } from '../reads.ts';
import { Button, Dialog, Facts } from './page.tsx';

/** The ID of the sheet, which is the side bar on a wide screen. */
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

/** These paths are prefixes of other pages' paths, so they are current only on an exact match. */
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

type Destination = Pick<MenuItem, 'to' | 'name'>;

type OpenDialog = 'palette' | 'help' | undefined;

interface KeysOptions {
  pages: readonly Destination[];
  open: OpenDialog;
  setOpen: (open: OpenDialog) => void;
}

/** Keyboard shortcuts, and the dialogs that they open. */
export function Keys({ pages, open, setOpen }: KeysOptions) {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { target } = event;
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select');
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setOpen('palette');
      } else if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      else if (event.key === '?') setOpen('help');
      else if (event.key === '/') {
        const filter = document.querySelector<HTMLElement>('[data-filter], .audit-filters input');
        if (!filter) return;
        event.preventDefault();
        filter.focus();
      }
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [setOpen]);
  const close = () => setOpen(undefined);
  if (open === 'palette') return <Palette pages={pages} close={close} />;
  if (open === 'help') return <Help close={close} />;
  return null;
}

function Palette({ pages, close }: { pages: readonly Destination[]; close: () => void }) {
  const [typed, setTyped] = useState('');
  const list = useRef<HTMLUListElement>(null);
  const wanted = typed.toLowerCase().split(/\s+/);
  const found = pages.filter(({ name }) => wanted.every((part) => name.toLowerCase().includes(part)));
  const goToFirst = (event: FormEvent) => {
    event.preventDefault();
    list.current?.querySelector('a')?.click();
  };
  return (
    <Dialog title="Go to" onClose={close} className="palette">
      <form onSubmit={goToFirst}>
        <input
          data-first
          aria-label="Where to"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </form>
      <ul className="plain" ref={list}>
        {found.slice(0, 12).map(({ to, name }) => (
          <li key={to}>
            <Link to={to} onClick={close}>
              {name}
            </Link>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="soft">No matching page.</p>}
    </Dialog>
  );
}

const keys = {
  'Ctrl K or ⌘ K': 'Go to a page or a cluster',
  '/': 'Filter the list',
  '?': 'Show this help',
  Esc: 'Close',
};

function Help({ close }: { close: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <Facts of={keys} />
      <p className="soft">Everything here also works in a terminal: look for “Show command”.</p>
    </Dialog>
  );
}
