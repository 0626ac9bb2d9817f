/** A native table with a filter (`/`), and rows that are put on the screen as they come near it. */
import type { UseQueryResult } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Fragment, type ReactNode, useDeferredValue, useState } from 'react';
import { Button } from './controls.tsx';
import { Loaded } from './page.tsx';

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand to the right, in figures of one width. */
  isNumber?: boolean;
}

interface TableOptions<Row> {
  /** What it lists, for screen readers. */
  name: string;
  /** Left out while they are read. */
  rows: readonly Row[] | undefined;
  /** What they are read by. */
  of?: UseQueryResult;
  columns: readonly Column<Row>[];
  id: (row: Row) => string;
  /** What the filter looks in; left out: there is no filter. */
  text?: (row: Row) => string;
  /** The filter is in the address of the page, as `filter`. */
  isInAddress?: boolean;
  /** What is shown in place of a table without rows. */
  none?: ReactNode;
}

const atFirst = 200;

export function Table<Row>({ rows, of, ...table }: TableOptions<Row>) {
  if (rows) return <Shown {...table} rows={rows} />;
  return of && <Loaded of={of}>{() => null}</Loaded>;
}

interface ShownOptions<Row> extends Omit<TableOptions<Row>, 'rows' | 'of'> {
  rows: readonly Row[];
}

function Shown<Row>({ name, rows, columns, id, text, isInAddress = false, none }: ShownOptions<Row>) {
  const [own, setOwn] = useState('');
  const [inAddress, setInAddress] = useFilterInAddress();
  const [typed, setTyped] = isInAddress ? [inAddress, setInAddress] : [own, setOwn];
  const [most, setMost] = useState(atFirst);
  const wanted = useDeferredValue(typed).toLowerCase();
  const found = text ? rows.filter((row) => text(row).toLowerCase().includes(wanted)) : rows;
  const left = found.length - most;
  if (rows.length === 0 && none !== undefined) return none;
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
            onChange={(event) => setTyped(event.target.value)}
          />
          <span className="soft" role="status">
            {wanted === '' ? `${rows.length}` : `${found.length} of ${rows.length}`}
          </span>
        </div>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="scroll" tabIndex={0} aria-label={name}>
        <Rows rows={found.slice(0, most)} columns={columns} id={id} />
      </section>
      {left > 0 && (
        <Button className="second small more" onClick={() => setMost(most * 5)}>
          Show more ({left} left)
        </Button>
      )}
    </div>
  );
}

function useFilterInAddress() {
  const { filter = '' } = useSearch({ strict: false }) as { filter?: string };
  const navigate = useNavigate();
  const setFilter = (text: string) => {
    const search = (old: object) => ({ ...old, filter: text || undefined });
    void navigate({ to: '.', search: search as never, replace: true });
  };
  return [filter, setFilter] as const;
}

function Rows<Row>({ rows, columns, id }: Pick<ShownOptions<Row>, 'rows' | 'columns' | 'id'>) {
  const classOf = ({ isNumber }: Column<Row>) => (isNumber ? 'number' : undefined);
  return (
    <table>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.name} scope="col" className={classOf(column)}>
              <Broken name={column.name} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={id(row)}>
            {columns.map((column) => (
              <td key={column.name} data-name={column.name} className={classOf(column)}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A column with a button in each row, `name` is what it is called where the label does not say enough. */
export function actionOf<Row>(
  label: string,
  act: (row: Row) => void,
  name?: (row: Row) => string,
): Column<Row> {
  return {
    name: 'Actions',
    cell: (row) => (
      <Button className="second small" aria-label={name?.(row)} onClick={() => act(row)}>
        {label}
      </Button>
    ),
  };
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

/** A cell of two lines; the second is left out where there is nothing to say in it. */
export function Two({
  first,
  second,
  className = '',
}: Record<'first' | 'second', ReactNode> & { className?: string }) {
  return (
    <div className={`two ${className}`}>
      {first}
      {second && <span>{second}</span>}
    </div>
  );
}
