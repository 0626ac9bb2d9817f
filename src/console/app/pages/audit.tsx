/** For operators: who did what, newest first. The filters are in the address. */

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { FormEvent } from 'react';
import { csv } from '../../../domain/csv.ts';
import {
  type AuditEntry,
  type AuditSearch,
  auditPageSize,
  auditSearch,
  readAudit,
  timesOf,
} from '../operator.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { type Kind, State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { save } from '../save.ts';

export function AuditPage() {
  const search = useSearch({ from: '/frame/audit' });
  const audit = useQuery(readAudit(search));
  const wanted = (search.filter ?? '').toLowerCase();
  const shown = (audit.data ?? []).filter((one) => textOf(one).toLowerCase().includes(wanted));
  return (
    <Page
      title="Audit trail"
      isWide
      sentence={audit.data && <Sentence entries={audit.data} search={search} />}
    >
      <Filters key={JSON.stringify(search)} search={search} />
      <Panel
        title="Who did what"
        tools={
          <>
            <button type="button" className="link small" onClick={() => saveTable(shown)}>
              Save as CSV
            </button>
            <button type="button" className="link small" onClick={() => saveLines(shown)}>
              Save as JSONL
            </button>
            <AsCommand api="Business" cli={commandOf(search)} operation={operationOf(search)} />
          </>
        }
      >
        <Loaded of={audit}>
          {(entries) =>
            entries.length === 0 ? (
              <Empty action={<Link to="/audit">Show the whole trail</Link>}>
                Nothing was recorded of this.
              </Empty>
            ) : (
              <Entries entries={entries} search={search} />
            )
          }
        </Loaded>
        <Pages entries={audit.data ?? []} search={search} />
      </Panel>
    </Page>
  );
}

function Sentence({ entries, search }: { entries: readonly AuditEntry[]; search: AuditSearch }) {
  const [newest] = entries;
  if (!newest) return <>No entry fits.</>;
  const { person, cluster, from, to, before } = search;
  const isNarrowed = [person, cluster, from, to, before].some((one) => one !== undefined);
  const refused = entries.filter(({ result }) => result !== 'done').length;
  return (
    <>
      {isNarrowed ? 'The newest of these is' : 'The last entry is'} number {newest.seq}, by{' '}
      <b>{newest.actor_email}</b>, <Age at={newest.at} />. Of the {entries.length} on this page,{' '}
      {refused === 0 ? 'none was refused' : `${refused} ${refused === 1 ? 'was' : 'were'} refused`}.
    </>
  );
}

const fields = [
  { name: 'person', label: 'Person', type: 'text', hint: 'Address or ID' },
  { name: 'cluster', label: 'Cluster', type: 'text', hint: 'Name or ID' },
  { name: 'from', label: 'From', type: 'date', hint: '' },
  { name: 'to', label: 'To', type: 'date', hint: '' },
] as const;

function Filters({ search }: { search: AuditSearch }) {
  const navigate = useNavigate({ from: '/audit' });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = Object.fromEntries(new FormData(event.currentTarget));
    void navigate({ search: auditSearch(typed) });
  };
  return (
    <form className="audit-filters" onSubmit={submit}>
      {fields.map(({ name, label, type, hint }) => (
        <label key={name}>
          {label}
          <input
            name={name}
            type={type}
            placeholder={hint}
            defaultValue={search[name] ?? ''}
            maxLength={200}
          />
        </label>
      ))}
      <div className="buttons">
        <button type="submit" className="second">
          Show
        </button>
        <Link to="/audit" className="clear">
          Clear
        </Link>
      </div>
    </form>
  );
}

/** What the filter of the page looks in. */
function textOf(one: AuditEntry): string {
  const { actor_email, operation, target, result, reason, details, source_address } = one;
  return [actor_email, operation, target, result, reason, details, source_address].join(' ');
}

function Entries({ entries, search }: { entries: readonly AuditEntry[]; search: AuditSearch }) {
  const navigate = useNavigate({ from: '/audit' });
  return (
    <Table
      name="entries"
      rows={entries}
      id={(one) => String(one.seq)}
      text={textOf}
      filter={search.filter ?? ''}
      onFilter={(text) => {
        const { filter: _old, ...rest } = search;
        void navigate({ search: text === '' ? rest : { ...rest, filter: text }, replace: true });
      }}
      columns={columns}
    />
  );
}

const columns: Column<AuditEntry>[] = [
  { name: 'No', isNumber: true, cell: (one) => one.seq },
  {
    name: 'When',
    cell: ({ at }) => (
      <div className="two when">
        <Age at={at} />
        <span>{moment.format(new Date(at))}</span>
      </div>
    ),
  },
  {
    name: 'Who',
    cell: (one) => (
      <div className="two">
        <Link to="/audit" search={{ person: one.actor_user_id }} title="Only what concerns them">
          {one.actor_email}
        </Link>
        <span>{one.source_address}</span>
      </div>
    ),
  },
  {
    name: 'What',
    cell: (one) => (
      <div className="two roomy">
        <code>{one.operation}</code>
        <span>{one.details || one.target}</span>
        {one.redaction && <span>Names were erased here.</span>}
      </div>
    ),
  },
  {
    name: 'Result',
    cell: ({ result }) => <State kind={kindOf(result)}>{result}</State>,
  },
  { name: 'Why', cell: (one) => <div className="roomy">{one.reason || '–'}</div> },
];

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' });

function kindOf(result: string): Kind {
  return result === 'done' ? 'good' : 'warn';
}

function Pages({ entries, search }: { entries: readonly AuditEntry[]; search: AuditSearch }) {
  const { before, ...rest } = search;
  const last = entries.at(-1);
  const hasOlder = entries.length === auditPageSize && last !== undefined;
  if (before === undefined && !hasOlder) return null;
  return (
    <nav className="pages" aria-label="Pages of the trail">
      {before !== undefined && (
        <Link to="/audit" search={rest}>
          Newest
        </Link>
      )}
      {hasOlder && (
        <Link to="/audit" search={{ ...rest, before: last.seq }}>
          Older
        </Link>
      )}
    </nav>
  );
}

const columnsOfFile = [
  'seq',
  'at',
  'actor_email',
  'actor_user_id',
  'operation',
  'target',
  'organization_id',
  'cluster_id',
  'subject_user_id',
  'result',
  'reason',
  'details',
  'source_address',
  'command_id',
  'hash',
] as const;

function saveTable(entries: readonly AuditEntry[]): void {
  const rows = entries.map((entry) => columnsOfFile.map((name) => entry[name] ?? ''));
  save('audit.csv', 'text/csv', csv([columnsOfFile, ...rows]));
}

function saveLines(entries: readonly AuditEntry[]): void {
  save('audit.jsonl', 'application/jsonl', entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
}

function commandOf({ person, cluster, ...days }: AuditSearch): string {
  const given = Object.entries({ person, cluster, ...timesOf(days) });
  const flags = given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quoted(value)}`]));
  return ['andromeda admin audit', ...flags].join(' ');
}

function quoted(text: string): string {
  return /^[\w@.:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function operationOf({ person, cluster, before, ...days }: AuditSearch): string {
  const query = new URLSearchParams({
    order: 'newest',
    ...(person !== undefined && { person }),
    ...(cluster !== undefined && { cluster }),
    ...timesOf(days),
    ...(before !== undefined && { after: String(before) }),
  });
  return `GET /operator/audit?${query}`;
}
