/** SSH sessions that have ended: everyone's for operators who may read the trail, and one's own. */

import { Link } from '@tanstack/react-router';
import type { components } from '../../../api/generated/business.ts';
import { formatBytes } from '../../../domain/units.ts';
import { bodyOf, business } from '../api.ts';
import { useClusterNames, type Whose } from '../cluster-names.ts';
import { count } from '../count.ts';
import { type Column, Two } from '../parts/table.tsx';
import { Text } from '../parts/text.tsx';
import { Age, span } from '../parts/time.tsx';
import { addressOf, flagsOf, TrailPage } from '../parts/trail.tsx';
import { ownSessionSearch, sessionSearch, type TrailQuery } from '../trail.ts';

const days = [
  { name: 'from', label: 'Open after' },
  { name: 'to', label: 'Open before' },
] as const;
const about = [
  { name: 'person', label: 'Person', hint: 'Email or ID' },
  { name: 'cluster', label: 'Cluster', hint: 'Name or ID' },
  { name: 'address', label: 'Source address', hint: 'IP address' },
  { name: 'key', label: 'Key', hint: 'Fingerprint or ID' },
] as const;

const panel = {
  title: 'Ended SSH sessions',
  rows: 'sessions',
  none: 'No ended session matches these filters.',
};

export function PastSessionsPage() {
  return <PastSessions whose="all" />;
}

export function MyPastSessionsPage() {
  return <PastSessions whose="own" />;
}

const kinds = {
  all: {
    path: '/past',
    title: 'Ended sessions',
    fields: [...about, ...days],
    parse: sessionSearch,
    topics: ['ssh-sessions'],
    command: (query: TrailQuery) => ({
      cli: `andromeda admin session past${flagsOf(query)}`,
      operation: `GET ${addressOf('/operator/sessions/past', query)}`,
    }),
  },
  own: {
    path: '/past/mine',
    title: 'My session history',
    fields: days,
    parse: ownSessionSearch,
    topics: ['my-ssh-sessions'],
    command: (query: TrailQuery) => {
      const address = addressOf('/me/ssh-sessions/past', query);
      return { cli: `andromeda call business GET '${address}'`, operation: `GET ${address}` };
    },
  },
} as const;

function PastSessions({ whose }: { whose: Whose }) {
  const names = useClusterNames(whose);
  return (
    <TrailPage
      {...kinds[whose]}
      sentence={(sessions) => <Sentence sessions={sessions} whose={whose} />}
      panel={panel}
      ask={(query, signal) => ask(whose, query, signal)}
      columns={columnsOf(whose, names)}
      text={(one) => textOfSession(one, names)}
      columnsOfFile={columnsOfFile}
    />
  );
}

async function ask(whose: Whose, query: TrailQuery, signal?: AbortSignal): Promise<readonly PastSession[]> {
  const options = { params: { query }, ...(signal && { signal }) };
  const answer =
    whose === 'own'
      ? await business.GET('/me/ssh-sessions/past', options)
      : await business.GET('/operator/sessions/past', options);
  return bodyOf(answer).sessions;
}

function Sentence({ sessions, whose }: { sessions: readonly PastSession[]; whose: Whose }) {
  const [last] = sessions;
  if (!last) return <>No session matches.</>;
  const people = new Set(sessions.map((one) => one.user_id)).size;
  return (
    <>
      The latest ended <Age at={last.closed_at} />. This page shows {count(sessions.length, 'session')}
      {whose === 'all' && ` of ${count(people, 'person', 'people')}`}.
    </>
  );
}

const columnsOfFile = [
  ...(['seq', 'id', 'username', 'user_id', 'cluster_id', 'login_node', 'remote_address'] as const),
  ...(['key_id', 'fingerprint', 'opened_at', 'closed_at', 'end_reason', 'bytes_up'] as const),
  ...(['bytes_down', 'channels', 'shells', 'file_transfers', 'command_count', 'commands'] as const),
  ...(['forward_count', 'forwards', 'job', 'job_node'] as const),
];

type PastSession = components['schemas']['PastSession'];

type Names = ReadonlyMap<string, string>;

/** What the filter of the list looks in. */
function textOfSession(one: PastSession, names: Names): string {
  const { username, cluster_id: id, remote_address, login_node, commands = [], forwards = [] } = one;
  const about = [username, names.get(id) ?? id, remote_address, login_node, one.fingerprint, one.end_reason];
  return [...about, ...commands, ...forwards].join(' ');
}

const person: Column<PastSession> = {
  name: 'Person',
  cell: (one) => (
    <Link to="/past" search={{ person: one.user_id }} title="Only this person">
      {one.username}
    </Link>
  ),
};

function columnsOf(whose: Whose, names: Names): Column<PastSession>[] {
  return [
    ...(whose === 'all' ? [person] : []),
    {
      name: 'Cluster',
      cell: ({ cluster_id: id, login_node: node }) => <Two first={names.get(id) ?? id} second={node} />,
    },
    {
      name: 'Opened',
      cell: ({ opened_at: from, closed_at: to }) => (
        <Two
          className="when"
          first={moment.format(new Date(from))}
          second={`for ${span(Date.parse(to) - Date.parse(from))}`}
        />
      ),
    },
    {
      name: 'Ended',
      cell: (one) => <Two first={<Age at={one.closed_at} />} second={one.end_reason.replaceAll('_', ' ')} />,
    },
    {
      name: 'From',
      cell: ({ remote_address: address, fingerprint }) => (
        <Two first={address} second={<span title={fingerprint}>{fingerprint.slice(0, 19)}…</span>} />
      ),
    },
    { name: 'Sent', isNumber: true, cell: (one) => amount(one.bytes_up) },
    { name: 'Received', isNumber: true, cell: (one) => amount(one.bytes_down) },
    { name: 'Activity', cell: (one) => <Uses of={one} /> },
  ];
}

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'short' });

function amount(bytes: number | undefined): string {
  return bytes === undefined ? '–' : formatBytes(bytes);
}

const listed = 3;

function Uses({ of }: { of: PastSession }) {
  if (of.channels === undefined) return <span className="soft">unknown</span>;
  const { commands = [], command_count: commandCount = 0, forwards = [] } = of;
  const { shells = 0, file_transfers: files = 0, forward_count: forwarded = 0 } = of;
  const kinds = [
    shells > 0 && (shells === 1 ? 'a shell' : `${shells} shells`),
    files > 0 && (files === 1 ? 'a file transfer' : `${files} file transfers`),
    commandCount > 0 && (commandCount === 1 ? 'a command' : `${commandCount} commands`),
    forwarded > 0 && `forwards to ${forwards.join(', ')}`,
  ].filter(Boolean);
  const rest = commandCount - Math.min(listed, commands.length);
  return (
    <div className="two roomy">
      {kinds.length === 0 ? 'nothing' : kinds.join(', ')}
      {commands.slice(0, listed).map((command, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes, and has repetitions
        <code key={index}>
          <Text of={command} />
        </code>
      ))}
      {commands.length > 0 && rest > 0 && <span>and {rest} more</span>}
    </div>
  );
}
