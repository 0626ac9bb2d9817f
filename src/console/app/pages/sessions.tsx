/** Active and ended SSH sessions: everyone's for operators, and a person's own ended ones. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { formatBytes } from '../../../domain/units.ts';
import { bodyOf, business, operation } from '../api.ts';
import { Empty, Page, Panel, said } from '../parts/page.tsx';
import { actionOf, type Column, Table, Two } from '../parts/table.tsx';
import { addressOf, flagsOf, TrailPage } from '../parts/trail.tsx';
import { Age, count, momentText, span, Text } from '../parts/values.tsx';
import { WriteDialog } from '../parts/write.tsx';
import { holdsStaff, readOpenSessions, useClusterNames, useWho } from '../reads.ts';
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

type Whose = keyof typeof kinds;

function PastSessions({ whose }: { whose: Whose }) {
  const names = useClusterNames();
  return (
    <TrailPage
      {...kinds[whose]}
      sentence={(sessions) => <PastSentence sessions={sessions} whose={whose} />}
      panel={panel}
      ask={(query) => ask(whose, query)}
      columns={columnsOf(whose, names)}
      columnsOfFile={columnsOfFile}
    />
  );
}

async function ask(whose: Whose, query: TrailQuery): Promise<readonly PastSession[]> {
  const options = { params: { query } };
  const answer =
    whose === 'own'
      ? await business.GET('/me/ssh-sessions/past', options)
      : await business.GET('/operator/sessions/past', options);
  return bodyOf(answer).sessions;
}

function PastSentence({ sessions, whose }: { sessions: readonly PastSession[]; whose: Whose }) {
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

const person: Column<PastSession> = {
  name: 'Person',
  cell: (one) => (
    <Link to="/past" search={{ person: one.user_id }} title="Only this person">
      {one.username}
    </Link>
  ),
};

function columnsOf(whose: Whose, names: ReadonlyMap<string, string>): Column<PastSession>[] {
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
          first={momentText(from)}
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

function amount(bytes: number | undefined): string {
  return bytes === undefined ? '–' : formatBytes(bytes);
}

const listed = 3;

function Uses({ of }: { of: PastSession }) {
  if (of.channels === undefined) return <span className="soft">unknown</span>;
  const { commands = [], command_count: commandCount = 0, forwards = [] } = of;
  const { shells = 0, file_transfers: files = 0, forward_count: forwarded = 0 } = of;
  const kinds = [
    shells > 0 && count(shells, 'shell'),
    files > 0 && count(files, 'file transfer'),
    commandCount > 0 && count(commandCount, 'command'),
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

type Session = components['schemas']['Session'];

export function ActiveSessionsPage() {
  // Logins and logouts are live; the transferred bytes are polled.
  const sessions = useQuery({ ...readOpenSessions(), refetchInterval: 30_000 });
  const names = useClusterNames();
  const [closing, setClosing] = useState<Session>();
  const columns = useColumns(names, setClosing);
  return (
    <Page
      title="Active sessions"
      sentence={said(sessions, (data) => <ActiveSentence sessions={data.sessions} />)}
    >
      <Panel
        title="Active SSH sessions"
        cli="andromeda admin session list"
        operation="GET /operator/sessions"
      >
        <Table
          name="sessions"
          of={sessions}
          rows={sessions.data?.sessions}
          id={({ id }) => id}
          text={(one) =>
            `${one.username} ${names.get(one.cluster_id) ?? ''} ${one.remote_address} ${one.login_node} ${one.fingerprint}`
          }
          isInAddress
          columns={columns}
          none={<Empty>No one is logged in through the gateway.</Empty>}
        />
      </Panel>
      {closing && (
        <Close
          session={closing}
          cluster={names.get(closing.cluster_id) ?? closing.cluster_id}
          close={() => setClosing(undefined)}
        />
      )}
    </Page>
  );
}

function ActiveSentence({ sessions }: { sessions: readonly Session[] }) {
  const [oldest] = sessions;
  if (!oldest) return <>No active sessions.</>;
  const people = new Set(sessions.map((one) => one.user_id)).size;
  const clusters = new Set(sessions.map((one) => one.cluster_id)).size;
  return (
    <>
      {count(people, 'person', 'people')} in {count(sessions.length, 'session')} on{' '}
      {count(clusters, 'cluster')}; the oldest was opened <Age at={oldest.opened_at} />.
    </>
  );
}

function useColumns(
  names: ReadonlyMap<string, string>,
  close: (session: Session) => void,
): Column<Session>[] {
  const who = useWho();
  const mayAudit = holdsStaff(who, 'staff.audit');
  const columns: Column<Session>[] = [
    {
      name: 'Person',
      cell: ({ user_id: id, username }) =>
        mayAudit ? (
          <Link to="/audit" search={{ person: id }} title="What they did">
            {username}
          </Link>
        ) : (
          username
        ),
    },
    { name: 'Cluster', cell: ({ cluster_id: id }) => names.get(id) ?? id },
    { name: 'Opened', cell: (one) => <Age at={one.opened_at} /> },
    { name: 'From', cell: (one) => one.remote_address },
    { name: 'Login node', cell: (one) => one.login_node },
    { name: 'Sent', isNumber: true, cell: (one) => formatBytes(one.bytes_up) },
    { name: 'Received', isNumber: true, cell: (one) => formatBytes(one.bytes_down) },
  ];
  const action = actionOf('Close…', close, ({ username }: Session) => `Close the session of ${username}`);
  return holdsStaff(who, 'staff.operate') ? [...columns, action] : columns;
}

interface CloseOptions {
  session: Session;
  cluster: string;
  close: () => void;
}

function Close({ session, cluster, close }: CloseOptions) {
  const { id, username, remote_address: from, opened_at: at } = session;
  return (
    <WriteDialog
      title={`Close the session of ${username}?`}
      operation={operation('post', '/operator/sessions/{sessionID}/close', { sessionID: id })}
      topics={['ssh-sessions']}
      body={{}}
      label="Close the session"
      danger
      close={close}
    >
      <p>
        On {cluster}, from {from}, opened <Age at={at} />. Programs in its terminal end; Slurm jobs continue.
        The person sees the reason and can log in again.
      </p>
    </WriteDialog>
  );
}
