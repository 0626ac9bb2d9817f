/** Ctrl/⌘ K: any page by its name. `?`: the keys. `/`: the filter of the page. */
import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useEffect, useState } from 'react';
import { Dialog } from './dialog.tsx';

export interface Place {
  name: string;
  to: string;
  hint?: string;
  /** Not one of the console's own pages. */
  isOutside?: boolean;
}

type Open = 'palette' | 'help' | undefined;

/** Listens for the keys, and shows what they open. */
export function Keys({
  places,
  open,
  setOpen,
}: {
  places: readonly Place[];
  open: Open;
  setOpen: (open: Open) => void;
}) {
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
      // In an editor, which has a shadow root, the event's own target is the element around it.
      const [target] = event.composedPath();
      const isTyping =
        target instanceof HTMLElement &&
        (target.matches('input, textarea, select') || target.isContentEditable);
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
  if (open === 'palette') return <Palette places={places} close={close} />;
  if (open === 'help') return <Help close={close} />;
  return null;
}

function Palette({ places, close }: { places: readonly Place[]; close: () => void }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = places
    .filter(({ name, hint = '' }) => words.every((word) => `${name} ${hint}`.toLowerCase().includes(word)))
    .slice(0, 12);
  const chosen = found[Math.min(at, found.length - 1)];
  const go = (place: Place | undefined) => {
    if (!place) return;
    close();
    if (place.isOutside) location.assign(place.to);
    else void navigate({ to: place.to });
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((Math.min(at, found.length - 1) + step + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      go(chosen);
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
      <div id="palette-list" role="listbox" aria-label="Places">
        {found.map((place, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above
          <div
            key={`${place.to} ${place.name}`}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === chosen}
            onClick={() => go(place)}
          >
            <span>{place.name}</span>
            {place.hint && <span className="soft">{place.hint}</span>}
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="soft">No page of that name.</p>}
    </Dialog>
  );
}

const keys = [
  ['Ctrl K or ⌘ K', 'Go to a page, a cluster, a person'],
  ['/', 'Filter the list'],
  ['?', 'This help'],
  ['Esc', 'Close'],
] as const;

function Help({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" onClose={close}>
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
      <p className="soft">Everything here can be done in a terminal as well: look for “As command”.</p>
    </Dialog>
  );
}
