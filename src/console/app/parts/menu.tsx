/** The menu: three groups at the side; on a narrow screen a bar at the bottom, and the rest in a sheet above it. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Ellipsis } from 'lucide-react';
import { type KeyboardEvent, useEffect, useState } from 'react';
import { barOf, type MenuGroup, type MenuItem } from '../menu.ts';
import { readRequests, useWho } from '../reads.ts';
import { Button, Dialog } from './page.tsx';

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

interface Destination extends Omit<MenuItem, 'icon'> {
  isOutside?: boolean;
}

type Open = 'palette' | 'help' | undefined;

interface KeysOptions {
  pages: readonly Destination[];
  open: Open;
  setOpen: (open: Open) => void;
}

/** Listens for the keys, and shows what they open. */
export function Keys({ pages, open, setOpen }: KeysOptions) {
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
      const { target } = event;
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select');
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setOpen('palette');
      } else if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      else if (event.key === '?') setOpen('help');
      else if (event.key === '/') {
        const filter = document.querySelector<HTMLInputElement>('[data-filter]');
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
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const wanted = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = pages
    .filter(({ name, hint }) => wanted.every((part) => `${name} ${hint}`.toLowerCase().includes(part)))
    .slice(0, 12);
  const chosen = found[Math.min(at, found.length - 1)];
  const go = (page: Destination) => {
    close();
    if (page.isOutside) location.assign(page.to);
    else void navigate({ to: page.to });
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((Math.min(at, found.length - 1) + step + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (chosen) go(chosen);
    }
  };
  return (
    <Dialog title="Go to" onClose={close} className="palette">
      <input
        data-first
        role="combobox"
        aria-label="Where to"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={chosen && `palette-${found.indexOf(chosen)}`}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <Found pages={found} chosen={chosen} go={go} />
      {found.length === 0 && <p className="soft">No matching page.</p>}
    </Dialog>
  );
}

interface FoundOptions {
  pages: readonly Destination[];
  chosen: Destination | undefined;
  go: (page: Destination) => void;
}

function Found({ pages, chosen, go }: FoundOptions) {
  return (
    <div id="palette-list" role="listbox" aria-label="Pages">
      {pages.map((page, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above
        <div
          key={`${page.to} ${page.name}`}
          id={`palette-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={page === chosen}
          onClick={() => go(page)}
        >
          <span>{page.name}</span>
          <span className="soft">{page.hint}</span>
        </div>
      ))}
    </div>
  );
}

const keys = [
  ['Ctrl K or ⌘ K', 'Go to a page or a cluster'],
  ['/', 'Filter the list'],
  ['?', 'Show this help'],
  ['Esc', 'Close'],
] as const;

function Help({ close }: { close: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <dl className="facts">
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p className="soft">Everything here also works in a terminal: look for “Show command”.</p>
    </Dialog>
  );
}
