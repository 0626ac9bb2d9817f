/** The columns of a table, and the order that a person chose for its rows. */
import { isValidElement, type ReactNode } from 'react';

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand to the right, in figures of one width. */
  isNumber?: boolean;
  /** What the name stands for, as a tooltip. */
  title?: string;
  /** What rows are sorted by; left out: what the cell says. */
  by?: (row: Row) => string | number | undefined;
  /** What the server calls the order by this column. */
  sort?: string;
}

export interface Order {
  /** Of the column. */
  name: string;
  isDescending: boolean;
}

const collator = new Intl.Collator('en', { numeric: true });

/** Rows without anything to sort by come last, whichever way the order goes. */
export function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order | undefined,
): readonly Row[] {
  const column = columns.find(({ name }) => name === order?.name);
  if (!order || !column) return rows;
  const keyed = rows.map((row) => ({
    row,
    key: (column.by ? column.by(row) : said(column.cell(row))) ?? '',
  }));
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

/** What a cell says, as far as it can be read from it: a moment, an address, or its text. */
function said(node: ReactNode): string | number {
  if (typeof node === 'string' || typeof node === 'number') return node === '–' ? '' : node;
  if (Array.isArray(node)) return node.map(said).join(' ').trim();
  if (!isValidElement<Record<string, ReactNode>>(node)) return '';
  const { at, email, first, children } = node.props;
  return said(at ?? email ?? first ?? children);
}
