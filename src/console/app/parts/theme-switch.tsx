/** Light, dark, or as the system has it. */
import { type LucideIcon, Monitor, Moon, Sun } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button } from './controls.tsx';

type Theme = 'system' | 'light' | 'dark';

const themes: readonly [Theme, name: string, LucideIcon][] = [
  ['system', 'System', Monitor],
  ['light', 'Light', Sun],
  ['dark', 'Dark', Moon],
];

/** As theme.ts reads it when the page is loaded. */
const stored = 'andromeda-theme';
const root = document.documentElement;

function shownTheme(): Theme {
  const { theme } = root.dataset as { theme?: Theme };
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

function show(theme: string | null): void {
  if (theme === 'light' || theme === 'dark') root.dataset['theme'] = theme;
  else delete root.dataset['theme'];
}

/** The scheme of this browser, in every tab of it. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(shownTheme);
  useEffect(() => {
    const follow = ({ key, newValue }: StorageEvent) => {
      if (key !== stored) return;
      show(newValue);
      setTheme(shownTheme());
    };
    window.addEventListener('storage', follow);
    return () => window.removeEventListener('storage', follow);
  }, []);
  const choose = (chosen: Theme) => {
    show(chosen);
    setTheme(chosen);
    if (chosen === 'system') localStorage.removeItem(stored);
    else localStorage.setItem(stored, chosen);
  };
  return (
    <fieldset className="theme">
      <legend className="hidden">Theme</legend>
      {themes.map(([one, name, Icon]) => (
        <Button
          key={one}
          className="second small"
          aria-label={name}
          title={name}
          aria-pressed={one === theme}
          onClick={() => choose(one)}
        >
          <Icon aria-hidden="true" />
        </Button>
      ))}
    </fieldset>
  );
}
