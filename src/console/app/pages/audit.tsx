/** For operators: who did what, newest first. */

import { Link } from '@tanstack/react-router';
import type { components } from '../../../api/generated/business.ts';
import { bodyOf, business } from '../api.ts';
import { count } from '../count.ts';
import { State } from '../parts/state.tsx';
import { type Column, Two } from '../parts/table.tsx';
import { Text } from '../parts/text.tsx';
import { Age } from '../parts/time.tsx';
import { addressOf, flagsOf, TrailPage } from '../parts/trail.tsx';
import { auditSearch, type TrailQuery } from '../trail.ts';

type AuditEntry = components['schemas']['AuditEntry'];

export default function AuditPage() {
  return (
    <TrailPage
      path="/audit"
      title="Audit trail"
      sentence={(entries, isNarrowed) => <Sentence entries={entries} isNarrowed={isNarrowed} />}
      fields={fields}
      parse={auditSearch}
      panel={{ title: 'Entries', rows: 'entries', none: 'No entries match these filters.' }}
      topics={['installation']}
      ask={ask}
      columns={columns}
      text={textOf}
      columnsOfFile={columnsOfFile}
      command={(query) => ({
        cli: `andromeda admin audit${flagsOf(query)}`,
        operation: `GET ${addressOf('/operator/audit', { order: 'newest', ...query })}`,
      })}
    />
  );
}

async function ask(filters: TrailQuery, signal?: AbortSignal): Promise<readonly AuditEntry[]> {
  const query = { order: 'newest' as const, ...filters };
  return bodyOf(await business.GET('/operator/audit', { params: { query }, ...(signal && { signal }) }))
    .entries;
}

function Sentence({ entries, isNarrowed }: { entries: readonly AuditEntry[]; isNarrowed: boolean }) {
  const [newest] = entries;
  if (!newest) return <>No entry matches.</>;
  const refused = entries.filter(({ result }) => result !== 'done').length;
  return (
    <>
      {isNarrowed ? 'The newest match is' : 'The latest entry is'} number {newest.seq}, by{' '}
      <b>{newest.actor_email}</b>, <Age at={newest.at} />. Of the {entries.length} on this page,{' '}
      {refused === 0 ? 'none was refused' : count(refused, 'was refused', 'were refused')}.
    </>
  );
}

const fields = [
  { name: 'person', label: 'Person', hint: 'Address or ID' },
  { name: 'cluster', label: 'Cluster', hint: 'Name or ID' },
  { name: 'operation', label: 'What', hint: 'revokeSshKey, ssh.*' },
  { name: 'from', label: 'From' },
  { name: 'to', label: 'To' },
] as const;

function textOf(one: AuditEntry): string {
  const { actor_email, operation, target, result, reason, details, source_address } = one;
  return [actor_email, operation, target, result, reason, details, source_address].join(' ');
}

const columns: Column<AuditEntry>[] = [
  { name: 'No.', isNumber: true, cell: (one) => one.seq },
  {
    name: 'When',
    cell: ({ at }) => <Two className="when" first={<Age at={at} />} second={moment.format(new Date(at))} />,
  },
  {
    name: 'Who',
    cell: (one) => (
      <Two
        first={
          <Link to="/audit" search={{ person: one.actor_user_id }} title="Only this person">
            {one.actor_email}
          </Link>
        }
        second={one.source_address}
      />
    ),
  },
  {
    name: 'What',
    cell: (one) => (
      <div className="two roomy">
        <code>{one.operation}</code>
        <Text of={one.details || one.target} />
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
    cell: ({ result }) => <State kind={result === 'done' ? 'good' : 'warn'}>{result}</State>,
  },
  {
    name: 'Reason',
    cell: (one) => (
      <div className="roomy">
        <Text of={one.reason || '–'} />
      </div>
    ),
  },
];

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' });

const columnsOfFile = [
  ...(['seq', 'at', 'actor_email', 'actor_user_id', 'operation', 'target', 'organization_id'] as const),
  ...(['cluster_id', 'subject_user_id', 'result', 'reason', 'details', 'source_address'] as const),
  ...(['command_id', 'hash'] as const),
];
