/** For operators: who did what, newest first. */
import { Link } from '@tanstack/react-router';
import type { components } from '../../../api/generated/business.ts';
import { actionLabel, auditOperations, auditSentence, sentenceText } from '../../../domain/audit/sentence.ts';
import { bodyOf, business } from '../api.ts';
import { type Column, Two } from '../parts/table.tsx';
import { addressOf, flagsOf, TrailPage } from '../parts/trail.tsx';
import { Age, count, momentText, State, Text } from '../parts/values.tsx';
import { holdsStaff, useWho } from '../reads.ts';
import { auditSearch, type TrailQuery } from '../trail.ts';

type AuditEntry = components['schemas']['AuditEntry'] & { sentence: string };

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
      columnsOfFile={columnsOfFile}
      command={(query) => ({
        cli: `andromeda admin audit --human${flagsOf(query)}`,
        operation: `GET ${addressOf('/operator/audit', { order: 'newest', ...query })}`,
      })}
    />
  );
}

async function ask(filters: TrailQuery): Promise<readonly AuditEntry[]> {
  const query = { order: 'newest' as const, ...filters };
  const answer = await business.GET('/operator/audit', { params: { query } });
  return bodyOf(answer).entries.map((entry) => ({ ...entry, sentence: sentenceText(entry) }));
}

function Sentence({ entries, isNarrowed }: { entries: readonly AuditEntry[]; isNarrowed: boolean }) {
  const [newest] = entries;
  if (!newest) return <>No entry matches.</>;
  const refused = entries.filter(({ result }) => result !== 'done').length;
  return (
    <>
      {isNarrowed ? 'The newest match is' : 'The latest entry is'} number {newest.seq}, by{' '}
      <b>{newest.actor_name ?? newest.actor_email}</b>, <Age at={newest.at} />. Of the {entries.length} on
      this page, {refused === 0 ? 'none was refused' : count(refused, 'was refused', 'were refused')}.
    </>
  );
}

const actions = auditOperations().map((name) => [name, actionLabel(name)] as const);

const fields = [
  { name: 'person', label: 'Person', hint: 'Email or ID' },
  { name: 'cluster', label: 'Cluster', hint: 'Name or ID' },
  {
    name: 'operation',
    label: 'Action',
    options: [
      ['', 'Any'],
      ['ssh.*', 'SSH logins and sessions'],
      ...actions.toSorted(([, one], [, other]) => one.localeCompare(other)),
    ],
  },
  {
    name: 'result',
    label: 'Result',
    options: [
      ['', 'Done and refused'],
      ['done', 'Done'],
      ['refused', 'Refused'],
    ],
  },
  { name: 'from', label: 'From' },
  { name: 'to', label: 'To' },
] as const;

const columns: Column<AuditEntry>[] = [
  { name: 'No.', isNumber: true, cell: (one) => one.seq },
  {
    name: 'When',
    cell: ({ at }) => <Two className="when" first={<Age at={at} />} second={momentText(at)} />,
  },
  { name: 'What happened', cell: (one) => <EntryCell entry={one} /> },
  {
    name: 'Result',
    cell: ({ result }) => (
      <span title={result}>
        <State kind={result === 'done' ? 'good' : 'bad'}>{result === 'done' ? 'Done' : 'Refused'}</State>
      </span>
    ),
  },
  {
    name: 'By',
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
];

function EntryCell({ entry }: { entry: AuditEntry }) {
  const { parts, reason, refused } = auditSentence(entry);
  const { operation, details, target, redaction } = entry;
  return (
    <div className="two roomy">
      <p className="event">
        {parts.map(({ text, of }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence have an order, and no identity
          <Named key={index} of={of} entry={entry}>
            {text}
          </Named>
        ))}
        {reason && (
          <>
            : <Text of={reason} />
          </>
        )}
      </p>
      {refused && (
        <p className="event">
          Refused: <Text of={refused} />
        </p>
      )}
      <span>
        <code>{operation}</code> <Text of={details === refused ? target : details || target} />
      </span>
      {redaction && (
        <span>
          {redaction.accepted
            ? 'The hash chain broke here; an operator accepted this on the host.'
            : 'Names were erased here.'}
        </span>
      )}
    </div>
  );
}

/** Links a name in a sentence to its page, where the person may see that page. */
function Named({ of, entry, children }: { of: NameKind; entry: AuditEntry; children: string }) {
  const who = useWho();
  const { actor_email, subject_email = '', cluster_id: cluster = '' } = entry;
  if (of === undefined || !holdsStaff(who, 'staff.read'))
    return of ? <b>{children}</b> : <bdi>{children}</bdi>;
  if (of === 'cluster')
    return (
      <Link to="/operator/machines" search={{ cluster }}>
        {children}
      </Link>
    );
  return (
    <Link to="/operator/people" search={{ email: of === 'actor' ? actor_email : subject_email }}>
      {children}
    </Link>
  );
}

type NameKind = ReturnType<typeof auditSentence>['parts'][number]['of'];

const columnsOfFile = [
  ...(['seq', 'at', 'sentence', 'result', 'actor_email', 'actor_name', 'actor_user_id'] as const),
  ...(['subject_email', 'subject_name', 'subject_user_id', 'cluster_name', 'cluster_id'] as const),
  ...(['organization_name', 'organization_id', 'operation', 'target', 'reason', 'details'] as const),
  ...(['source_address', 'command_id', 'hash'] as const),
];
