/** Who did what: the audit trail, newest first, with its filters in the address. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import type { components } from '../../../api/business.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { State } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { readAudit } from '../reads.ts';
import { csv, save } from '../save.ts';

type Entry = components['schemas']['AuditEntry'];

export function AuditPage() {
  const { person, cluster, filter } = useSearch({ from: '/frame/audit' });
  const wanted = { ...(person !== undefined && { person }), ...(cluster !== undefined && { cluster }) };
  const audit = useQuery(readAudit(wanted));
  const isFiltered = person !== undefined || cluster !== undefined;
  const newest = audit.data?.[0];
  return (
    <Page
      title="Audit trail"
      isWide
      sentence={
        audit.data &&
        (newest ? (
          <>
            The last entry is number {newest.seq}, <Age at={newest.at} />. Shown: {audit.data.length},{' '}
            {isFiltered ? 'of the last month' : 'the newest'}.
          </>
        ) : (
          'There is no such entry.'
        ))
      }
    >
      <Filters key={`${person} ${cluster}`} person={person ?? ''} cluster={cluster ?? ''} />
      <Panel
        title="Entries"
        tools={
          <>
            <button type="button" className="link small" onClick={() => saveCsv(audit.data ?? [])}>
              CSV
            </button>
            <button type="button" className="link small" onClick={() => saveLines(audit.data ?? [])}>
              JSONL
            </button>
            <AsCommand api="Business" cli="andromeda admin audit" operation="GET /operator/audit" />
          </>
        }
      >
        <Loaded of={audit}>
          {(entries) =>
            entries.length === 0 ? (
              <Empty>Nothing was recorded.</Empty>
            ) : (
              <Entries entries={entries} filter={filter ?? ''} />
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}

function Filters({ person, cluster }: { person: string; cluster: string }) {
  const navigate = useNavigate({ from: '/audit' });
  const [typed, setTyped] = useState({ person, cluster });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const search = Object.fromEntries(Object.entries(typed).filter(([, value]) => value.trim() !== ''));
    void navigate({ search });
  };
  return (
    <form className="filters" onSubmit={submit}>
      <input
        aria-label="Person: an address or an ID"
        placeholder="Person (address)"
        value={typed.person}
        onChange={(event) => setTyped({ ...typed, person: event.target.value })}
      />
      <input
        aria-label="Cluster: a name or an ID"
        placeholder="Cluster (name)"
        value={typed.cluster}
        onChange={(event) => setTyped({ ...typed, cluster: event.target.value })}
      />
      <button type="submit" className="second">
        Show
      </button>
    </form>
  );
}

function Entries({ entries, filter }: { entries: readonly Entry[]; filter: string }) {
  const navigate = useNavigate({ from: '/audit' });
  return (
    <Table
      name="entries"
      rows={entries}
      id={(one) => String(one.seq)}
      text={(one) =>
        `${one.actor_email} ${one.operation} ${one.target} ${one.reason} ${one.details} ${one.source_address} ${one.result}`
      }
      filter={filter}
      onFilter={(text) =>
        void navigate({
          search: ({ filter: _old, ...rest }) => (text === '' ? rest : { ...rest, filter: text }),
          replace: true,
        })
      }
      columns={[
        { name: 'No', isNumber: true, cell: (one) => one.seq },
        { name: 'When', cell: (one) => <Age at={one.at} /> },
        { name: 'Who', cell: (one) => one.actor_email },
        { name: 'What', cell: (one) => <code>{one.operation}</code> },
        {
          name: 'Result',
          cell: (one) =>
            one.result === 'done' ? <State kind="good">done</State> : <State kind="warn">{one.result}</State>,
        },
        { name: 'Reason', cell: (one) => one.reason },
        { name: 'Details', cell: (one) => <span className="long">{one.details}</span> },
      ]}
    />
  );
}

const fields = [
  'seq',
  'at',
  'actor_email',
  'operation',
  'target',
  'result',
  'reason',
  'source_address',
  'details',
  'hash',
] as const;

function saveCsv(entries: readonly Entry[]): void {
  save('audit.csv', 'text/csv', csv([fields, ...entries.map((entry) => fields.map((name) => entry[name]))]));
}

function saveLines(entries: readonly Entry[]): void {
  save('audit.jsonl', 'application/jsonl', entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
}
