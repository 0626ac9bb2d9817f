/** Which columns of a table a person wants to see; this browser keeps it. */
import { useState } from 'react';
import type { Column } from './table-order.ts';

interface Choice {
  columns: readonly string[];
  hidden: ReadonlySet<string>;
  toggle: (name: string) => void;
}

/** Of fewer, all fit. */
const chosenFrom = 6;

/** The columns to show, and what there is to choose; undefined for a table of few. The first is always there, and the buttons. */
export function useShown<Row>(
  table: string,
  columns: readonly Column<Row>[],
): [columns: readonly Column<Row>[], choice: Choice | undefined] {
  const key = `andromeda-columns-${table}`;
  const [hidden, setHidden] = useState<ReadonlySet<string>>(() => kept(key));
  if (columns.length < chosenFrom) return [columns, undefined];
  const [first] = columns;
  const free = columns.filter((one) => one !== first && one.name !== 'Actions').map(({ name }) => name);
  const toggle = (name: string) => {
    const now = hidden.symmetricDifference(new Set([name]));
    localStorage.setItem(key, JSON.stringify([...now]));
    setHidden(now);
  };
  const shown = columns.filter(({ name }) => !free.includes(name) || !hidden.has(name));
  return [shown, { columns: free, hidden, toggle }];
}

function kept(key: string): Set<string> {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return new Set(Array.isArray(names) ? names.map(String) : []);
  } catch {
    return new Set();
  }
}

export function ColumnChoice({ columns, hidden, toggle }: Choice) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="columns" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Columns</summary>
      {isOpen && (
        <div>
          {columns.map((name) => (
            <label key={name}>
              <input type="checkbox" checked={!hidden.has(name)} onChange={() => toggle(name)} /> {name}
            </label>
          ))}
        </div>
      )}
    </details>
  );
}
