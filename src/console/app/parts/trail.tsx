/** A page of a list that goes back in time: filters, kept in the address, one page of rows, and files of all rows. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { FormEvent, ReactNode } from 'react';
import { read } from '../reads.ts';
import { type TrailQuery, type TrailSearch, trailQuery } from '../trail.ts';
import { type CommandOf, Empty, Page, Panel, quoted, said } from './page.tsx';
import { SaveAll } from './save.tsx';
import { type Column, Table } from './table.tsx';

type Path = '/audit' | '/past' | '/past/mine';

interface Trail<Row> {
  path: Path;
  title: string;
  sentence: (rows: readonly Row[], isNarrowed: boolean) => ReactNode;
  fields: readonly FilterField[];
  parse: (search: Record<string, unknown>) => TrailSearch;
  panel: { title: string; rows: string; none: string };
  topics: readonly string[];
  ask: (query: TrailQuery) => Promise<readonly Row[]>;
  columns: readonly Column<Row>[];
  columnsOfFile: readonly (keyof Row & string)[];
  command: (query: TrailQuery) => CommandOf;
}

interface FilterField {
  name: keyof TrailSearch;
  label: string;
  hint?: string;
  /** Values with their labels; the address's value is added if it is missing. */
  options?: readonly (readonly [value: string, label: string])[];
}

const pageSize = 100;
/** Small enough that the server answers other requests in between. */
const exportPageSize = 250;

export function TrailPage<Row extends { seq: number }>(trail: Trail<Row>) {
  const { path, panel, ask, columnsOfFile } = trail;
  const search = trail.parse(useSearch({ strict: false }));
  const query = trailQuery(search, pageSize);
  const isNarrowed = Object.keys(query).length > 1;
  const rows = useQuery(read(['trail', path, query], trail.topics, () => ask(query)));
  return (
    <Page title={trail.title} isWide sentence={said(rows, (list) => trail.sentence(list, isNarrowed))}>
      <Filters key={JSON.stringify(search)} {...trail} search={search} />
      <Panel
        title={panel.title}
        tools={
          <SaveAll
            name={path === '/audit' ? 'audit' : 'sessions'}
            pages={() => pagesOf(search, ask)}
            columns={columnsOfFile}
            cells={(one) => columnsOfFile.map((name) => cellOf(one[name]))}
          />
        }
        {...trail.command(query)}
      >
        <Table
          name={panel.rows}
          of={rows}
          rows={rows.data}
          id={({ seq }) => String(seq)}
          columns={trail.columns}
          none={<Empty action={<Link to={path}>Show all {panel.rows}</Link>}>{panel.none}</Empty>}
        />
        <Pages path={path} rows={rows.data ?? []} search={search} />
      </Panel>
    </Page>
  );
}

function cellOf(value: unknown): string | number {
  if (Array.isArray(value)) return value.join('\n');
  return typeof value === 'number' ? value : String(value ?? '');
}

async function* pagesOf<Row extends { seq: number }>(
  search: TrailSearch,
  ask: (query: TrailQuery) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let { before } = search;
  for (;;) {
    const rows = await ask(trailQuery({ ...search, before }, exportPageSize));
    yield rows;
    before = rows.at(-1)?.seq;
    if (rows.length < exportPageSize) return;
  }
}

interface FilterOptions extends Pick<Trail<never>, 'path' | 'fields' | 'parse'> {
  search: TrailSearch;
}

/** Mounted again for each address (`key`), so that uncontrolled fields show its values. */
function Filters({ path, fields, parse, search }: FilterOptions) {
  const navigate = useNavigate();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = parse(Object.fromEntries(new FormData(event.currentTarget)));
    void navigate({ to: path, search: typed as never });
  };
  return (
    <form className="audit-filters" onSubmit={submit}>
      {fields.map((field) => (
        <FilterControl key={field.name} {...field} value={String(search[field.name] ?? '')} />
      ))}
      <div className="buttons">
        <button type="submit" className="second">
          Show
        </button>
        <Link to={path} className="clear">
          Clear
        </Link>
      </div>
    </form>
  );
}

function FilterControl({ name, label, hint, options, value }: FilterField & { value: string }) {
  if (!options)
    return (
      <label>
        {label}
        <input
          name={name}
          type={hint === undefined ? 'date' : 'text'}
          placeholder={hint}
          defaultValue={value}
          maxLength={200}
        />
      </label>
    );
  const isListed = options.some(([one]) => one === value);
  return (
    <label>
      {label}
      <select name={name} defaultValue={value}>
        {[...options, ...(isListed ? [] : [[value, value] as const])].map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface PagesOptions {
  path: Path;
  rows: readonly { seq: number }[];
  search: TrailSearch;
}

function Pages({ path, rows, search }: PagesOptions) {
  const { before, ...rest } = search;
  const last = rows.at(-1);
  const hasOlder = rows.length === pageSize && last !== undefined;
  if (before === undefined && !hasOlder) return null;
  return (
    <nav className="pages" aria-label="Pages of the list">
      {before !== undefined && (
        <Link to={path} search={rest as never}>
          Newest
        </Link>
      )}
      {hasOlder && (
        <Link to={path} search={{ ...rest, before: last.seq } as never}>
          Older
        </Link>
      )}
    </nav>
  );
}

export function flagsOf({ limit: _page, after: _before, result, ...query }: TrailQuery): string {
  const flags = Object.entries(query).map(([name, value]) => ` --${name} ${quoted(value)}`);
  return [...flags, ...(result ? [` --${result}`] : [])].join('');
}

/** The path of an operation with its query, without the page size. */
export function addressOf(path: string, { limit: _page, ...query }: TrailQuery & { order?: string }): string {
  const given = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
