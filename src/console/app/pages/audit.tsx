/** For operators: who did what, newest first. The filters are in the address. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { bodyOf, business } from '../api.ts';
import {
  type AuditEntry,
  type AuditSearch,
  auditPageSize,
  auditQuery,
  auditSearch,
  readAudit,
  timesOf,
} from '../operator.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Filters } from '../parts/filters.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { SaveAll } from '../parts/save-all.tsx';
import { type Kind, State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';

export function AuditPage() {
  const search = useSearch({ from: '/frame/audit' });
  const navigate = useNavigate({ from: '/audit' });
  const audit = useQuery(readAudit(search));
  const wanted = (search.filter ?? '').toLowerCase();
  return (
    <Page
      title="Audit trail"
      isWide
      sentence={audit.data && <Sentence entries={audit.data} search={search} />}
    >
      <Filters
        key={JSON.stringify(search)}
        fields={fields}
        values={{ ...search }}
        onSubmit={(typed) => void navigate({ search: auditSearch(typed) })}
        clear={
          <Link to="/audit" className="clear">
            Clear
          </Link>
        }
      />
      <Panel
        title="Entries"
        tools={
          <>
            <SaveAll
              name="audit"
              pages={(signal) => pagesOf(search, signal)}
              isWanted={(one) => textOf(one).toLowerCase().includes(wanted)}
              columns={columnsOfFile}
              cells={(one) => columnsOfFile.map((name) => one[name] ?? '')}
            />
            <AsCommand api="Business" cli={commandOf(search)} operation={operationOf(search)} />
          </>
        }
      >
        <Loaded of={audit}>
          {(entries) =>
            entries.length === 0 ? (
              <Empty action={<Link to="/audit">Show all entries</Link>}>
                No entries match these filters.
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
  if (!newest) return <>No entry matches.</>;
  const { person, cluster, operation, from, to, before } = search;
  const isNarrowed = [person, cluster, operation, from, to, before].some((one) => one !== undefined);
  const refused = entries.filter(({ result }) => result !== 'done').length;
  return (
    <>
      {isNarrowed ? 'The newest match is' : 'The latest entry is'} number {newest.seq}, by{' '}
      <b>{newest.actor_email}</b>, <Age at={newest.at} />. Of the {entries.length} on this page,{' '}
      {refused === 0 ? 'none was refused' : `${refused} ${refused === 1 ? 'was' : 'were'} refused`}.
    </>
  );
}

const fields = [
  { name: 'person', label: 'Person', type: 'text', hint: 'Address or ID' },
  { name: 'cluster', label: 'Cluster', type: 'text', hint: 'Name or ID' },
  { name: 'operation', label: 'What', type: 'text', hint: 'revokeSshKey, ssh.*' },
  { name: 'from', label: 'From', type: 'date', hint: '' },
  { name: 'to', label: 'To', type: 'date', hint: '' },
] as const;

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
  { name: 'No.', isNumber: true, cell: (one) => one.seq },
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
        <Link to="/audit" search={{ person: one.actor_user_id }} title="Only this person">
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
        {one.redaction && (
          <span>
            {one.redaction.accepted
              ? 'The hash chain broke here; an operator accepted this on the host.'
              : 'Names were erased here.'}
          </span>
        )}
      </div>
    ),
  },
  {
    name: 'Result',
    cell: ({ result }) => <State kind={kindOf(result)}>{result}</State>,
  },
  { name: 'Reason', cell: (one) => <div className="roomy">{one.reason || '–'}</div> },
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

/** Few enough that the server answers others in between. */
const exportPageSize = 250;

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

/** From the page that is shown on, page by page. */
async function* pagesOf(search: AuditSearch, signal: AbortSignal): AsyncGenerator<readonly AuditEntry[]> {
  let after = search.before;
  for (;;) {
    const query = { ...auditQuery({ ...search, before: after }), limit: exportPageSize };
    const { entries } = bodyOf(await business.GET('/operator/audit', { params: { query }, signal }));
    yield entries;
    after = entries.at(-1)?.seq;
    if (entries.length < exportPageSize) return;
  }
}

function commandOf({ person, cluster, operation, ...days }: AuditSearch): string {
  const given = Object.entries({ person, cluster, operation, ...timesOf(days) });
  const flags = given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quoted(value)}`]));
  return ['andromeda admin audit', ...flags].join(' ');
}

function quoted(text: string): string {
  return /^[\w@.:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function operationOf(search: AuditSearch): string {
  const { limit: _page, ...query } = auditQuery(search);
  const given = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return `GET /operator/audit?${new URLSearchParams(given)}`;
}
