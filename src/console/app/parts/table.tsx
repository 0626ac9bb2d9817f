/**
 * A native table. The header, the first column and the column of buttons are sticky. People filter it (`/`) and sort by any
 * column.
 */
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { isValidElement, type ReactNode, useDeferredValue, useState } from 'react';
import { Button, Loaded, type Reading } from './page.tsx';

export interface Remote {
  filter: string;
  setFilter: (text: string) => void;
  order: Order | undefined;
  setOrder: (order: Order) => void;
  total: number | undefined;
  more: () => void;
}

interface TableOptions<Row> {
  name: string;
  rows: readonly Row[] | undefined;
  /** The read of the rows. */
  of?: Reading<unknown>;
  columns: readonly Column<Row>[];
  id: (row: Row) => string;
  text?: (row: Row) => string;
  /** The page's address keeps the filter, as `filter`. */
  isInAddress?: boolean;
  none?: ReactNode;
}

const atFirst = 200;

export function Table<Row>({ rows, of, ...table }: TableOptions<Row>) {
  const shown = rows && <Shown {...table} rows={rows} />;
  return of ? <Loaded of={of}>{() => shown}</Loaded> : shown;
}

interface ShownOptions<Row> extends Omit<TableOptions<Row>, 'rows' | 'of'> {
  rows: readonly Row[];
}

function Shown<Row>({ rows, text, isInAddress, none, ...table }: ShownOptions<Row>) {
  const own = useState('');
  const inAddress = useFilterInAddress();
  const [filter, setFilter] = isInAddress ? inAddress : own;
  const [order, setOrder] = useState<Order>();
  const [most, setMost] = useState(atFirst);
  const wanted = useDeferredValue(filter).toLowerCase();
  const found = text ? rows.filter((row) => text(row).toLowerCase().includes(wanted)) : rows;
  const inOrder = sorted(found, table.columns, order);
  if (rows.length === 0 && none !== undefined) return none;
  const remote = { filter, setFilter, order, setOrder, total: found.length, more: () => setMost(most * 5) };
  return (
    <RemoteTable
      {...table}
      rows={inOrder.slice(0, most)}
      remote={remote}
      all={rows.length}
      isFiltered={text !== undefined}
    />
  );
}

export function useFilterInAddress() {
  const { filter = '' } = useSearch({ from: '/frame' });
  const navigate = useNavigate();
  const setFilter = (text: string) =>
    void navigate({ to: '.', search: (old) => ({ ...old, filter: text || undefined }), replace: true });
  return [filter, setFilter] as const;
}

interface RemoteOptions<Row> extends Pick<ShownOptions<Row>, 'name' | 'rows' | 'columns' | 'id'> {
  remote: Remote;
  /** The number of rows without a filter. */
  all: number;
  isFiltered?: boolean;
}

/** A table whose rows the server filters, sorts and limits. */
export function RemoteTable<Row>({ remote, all, isFiltered = true, ...table }: RemoteOptions<Row>) {
  const { name, rows } = table;
  const { filter, setFilter, total, more } = remote;
  // The address updates later: until then the field would show the earlier text, and lose the cursor.
  const [typed, setTyped] = useState<string>();
  const left = (total ?? 0) - rows.length;
  const known = filter === '' ? `${all}` : total === undefined ? '…' : `${total} of ${all}`;
  return (
    <div className="table">
      {isFiltered && (all > 5 || filter !== '' || typed !== undefined) && (
        <div className="filter">
          <input
            type="search"
            data-filter
            aria-label={`Filter ${name}`}
            placeholder="Filter  /"
            value={typed ?? filter}
            onChange={({ target }) => {
              setTyped(target.value);
              setFilter(target.value);
            }}
            onBlur={() => setTyped(undefined)}
          />
          <span className="soft" role="status">
            {known}
          </span>
        </div>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: an area that scrolls must be reachable by keyboard */}
      <section className="scroll" tabIndex={0} aria-label={name}>
        <Rows {...table} order={remote.order} setOrder={remote.setOrder} />
      </section>
      {left > 0 && (
        <Button className="second small more" onClick={more}>
          Show more ({left} left)
        </Button>
      )}
    </div>
  );
}

interface RowsOptions<Row> extends Pick<ShownOptions<Row>, 'rows' | 'columns' | 'id'> {
  order: Order | undefined;
  setOrder: (order: Order) => void;
}

function Rows<Row>({ rows, columns, id, order, setOrder }: RowsOptions<Row>) {
  const classOf = ({ isNumber, name }: Column<Row>) =>
    isNumber ? 'number' : name === actions ? 'act' : undefined;
  return (
    <table>
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.name}
              scope="col"
              className={classOf(column)}
              aria-sort={order?.name === column.name ? direction(order) : undefined}
            >
              <Head column={column} order={order} setOrder={setOrder} />
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

export const actions = 'Actions';

function direction({ isDescending }: Order) {
  return isDescending ? 'descending' : 'ascending';
}

interface HeadOptions<Row> extends Pick<RowsOptions<Row>, 'order' | 'setOrder'> {
  column: Column<Row>;
}

function Head<Row>({ column: { name, title }, order, setOrder }: HeadOptions<Row>) {
  if (name === actions) return name;
  const isOrder = order?.name === name;
  const mark = isOrder && (order.isDescending ? ' ↓' : ' ↑');
  return (
    <button
      type="button"
      className="link sort"
      title={title}
      onClick={() => setOrder({ name, isDescending: isOrder && !order.isDescending })}
    >
      {name}
      {mark && <span aria-hidden="true">{mark}</span>}
    </button>
  );
}

/** A column with a button in each row; `name` is its accessible name where the label is not enough. */
export function actionOf<Row>(
  label: string,
  act: (row: Row) => void,
  name?: (row: Row) => string,
): Column<Row> {
  return {
    name: actions,
    cell: (row) => (
      <Button className="second small" aria-label={name?.(row)} onClick={() => act(row)}>
        {label}
      </Button>
    ),
  };
}

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

export function PersonCell({ of: { user_id: id, name, email } }: { of: PersonNamed }) {
  const hasName = name !== '' && name !== email;
  return (
    <Link to="/members/$userId" params={{ userId: id }} className="two named" title={`${name} ${email}`}>
      {hasName && <b>{name}</b>} <span>{email}</span>
    </Link>
  );
}

type PersonNamed = Record<'user_id' | 'name' | 'email', string>;

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  isNumber?: boolean;
  title?: string;
  sort?: string;
}

export interface Order {
  name: string;
  isDescending: boolean;
}

const collator = new Intl.Collator('en', { numeric: true });

/** Rows with an empty cell come last in either direction. */
function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order | undefined,
): readonly Row[] {
  const column = columns.find(({ name }) => name === order?.name);
  if (!order || !column) return rows;
  const keyed = rows.map((row) => ({ row, key: said(column.cell(row)) }));
  keyed.sort(({ key: one }, { key: other }) => {
    if (one === '' || other === '') return one === other ? 0 : one === '' ? 1 : -1;
    return compare(one, other) * (order.isDescending ? -1 : 1);
  });
  return keyed.map(({ row }) => row);
}

function compare(one: string | number, other: string | number): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return collator.compare(String(one), String(other));
}

/** The sort key of a cell, from the props of its element: a time, an email address, or its text. */
function said(node: ReactNode): string | number {
  if (typeof node === 'string' || typeof node === 'number') return node === '–' ? '' : node;
  if (Array.isArray(node)) return node.map(said).join(' ').trim();
  if (!isValidElement<Record<string, ReactNode>>(node)) return '';
  const { at, email, first, children } = node.props;
  return said(at ?? email ?? first ?? children);
}
