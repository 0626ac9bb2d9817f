/** A native table with a filter (`/`), and rows that are put on the screen as they come near it. */
import { Fragment, type ReactNode, useDeferredValue, useState } from 'react';

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand to the right, in figures of one width. */
  isNumber?: boolean;
}

const atFirst = 200;

export function Table<Row>({
  name,
  rows,
  columns,
  id,
  text,
  filter,
  onFilter,
}: {
  /** What it lists, for screen readers. */
  name: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  id: (row: Row) => string;
  /** What the filter looks in; left out: there is no filter. */
  text?: (row: Row) => string;
  filter?: string;
  onFilter?: (filter: string) => void;
}) {
  const [own, setOwn] = useState('');
  const [most, setMost] = useState(atFirst);
  const typed = filter ?? own;
  const wanted = useDeferredValue(typed).toLowerCase();
  const found = text ? rows.filter((row) => text(row).toLowerCase().includes(wanted)) : rows;
  const shown = found.slice(0, most);
  return (
    <div className="table">
      {text && rows.length > 5 && (
        <div className="filter">
          <input
            type="search"
            data-filter
            aria-label={`Filter ${name}`}
            placeholder="Filter  /"
            value={typed}
            onChange={(event) => (onFilter ?? setOwn)(event.target.value)}
          />
          <span className="soft" role="status">
            {wanted === '' ? `${rows.length}` : `${found.length} of ${rows.length}`}
          </span>
        </div>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="scroll" tabIndex={0} aria-label={name}>
        <table>
          <thead>
            <tr>
              {columns.map(({ name, isNumber }) => (
                <th key={name} scope="col" className={isNumber ? 'number' : undefined}>
                  <Broken name={name} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={id(row)}>
                {columns.map((column) => (
                  <td
                    key={column.name}
                    data-name={column.name}
                    className={column.isNumber ? 'number' : undefined}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {found.length > shown.length && (
        <button type="button" className="second small more" onClick={() => setMost(most * 5)}>
          Show more ({found.length - shown.length} left)
        </button>
      )}
    </div>
  );
}

/** A long name that may go on in another line after a dot. */
function Broken({ name }: { name: string }) {
  return name.split('.').map((part, index) => (
    <Fragment key={part}>
      {index > 0 && (
        <>
          .<wbr />
        </>
      )}
      {part}
    </Fragment>
  ));
}
