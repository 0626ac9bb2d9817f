/** SSH sessions that have ended: everyone's for operators who may read the trail, and one's own. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { formatBytes } from '../../../domain/units.ts';
import { bodyOf, business, operation } from '../api.ts';
import { Button, Empty, Page, Panel, said } from '../parts/page.tsx';
import { actionOf, type Column, Table, Two } from '../parts/table.tsx';
import { addressOf, flagsOf, TrailPage } from '../parts/trail.tsx';
import { Age, count, State, span, Text } from '../parts/values.tsx';
import { WriteDialog } from '../parts/write.tsx';
import { holdsStaff, readOpenSessions, useClusterNames, useWho, type Whose } from '../reads.ts';
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
      sentence={(sessions) => <PastSentence sessions={sessions} whose={whose} />}
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

type Names = ReadonlyMap<string, string>;

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

type Session = components['schemas']['Session'];

/** How long the gateway may take to end a session that was closed. */
const endsWithinMs = 2_000;

export function ActiveSessionsPage() {
  const sessions = useQuery(readOpenSessions());
  const names = useClusterNames('all');
  const [closing, setClosing] = useState<Session>();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const finish = ({ id }: Session) => {
    setClosed(new Set([...closed, id]));
    setClosing(undefined);
    setTimeout(() => void sessions.refetch(), endsWithinMs);
  };
  const columns = useColumns(names, closed, setClosing);
  return (
    <Page
      title="Active sessions"
      sentence={said(sessions, (data) => <ActiveSentence sessions={data.sessions} />)}
      actions={<Actions of={sessions} />}
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
          onDone={() => finish(closing)}
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

function Actions({ of }: { of: UseQueryResult }) {
  return (
    <>
      {holdsStaff(useWho(), 'staff.audit') && <Link to="/past">Ended sessions</Link>}
      <ReadAgain of={of} />
    </>
  );
}

/** Who comes and goes is live; how much passed is as of when it was read. */
function ReadAgain({ of }: { of: UseQueryResult }) {
  if (of.dataUpdatedAt === 0) return null;
  return (
    <p className="as-of">
      As of <Age at={new Date(of.dataUpdatedAt).toISOString()} />{' '}
      <Button className="second small" onClick={() => void of.refetch()}>
        Refresh
      </Button>
    </p>
  );
}

function useColumns(
  names: ReadonlyMap<string, string>,
  closed: ReadonlySet<string>,
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
  const action = actionOf('Close…', close, ({ username }) => `Close the session of ${username}`);
  const actions: Column<Session> = {
    ...action,
    cell: (one) => (closed.has(one.id) ? <State kind="busy">Closing…</State> : action.cell(one)),
  };
  return holdsStaff(who, 'staff.operate') ? [...columns, actions] : columns;
}

interface CloseOptions {
  session: Session;
  cluster: string;
  close: () => void;
  onDone: () => void;
}

function Close({ session, cluster, ...then }: CloseOptions) {
  const { id, username, remote_address: from, opened_at: at } = session;
  return (
    <WriteDialog
      {...then}
      title={`Close the session of ${username}?`}
      operation={operation('post', '/operator/sessions/{sessionID}/close', { sessionID: id })}
      topics={['ssh-sessions']}
      body={{}}
      label="Close the session"
      danger
    >
      <p>
        On {cluster}, from {from}, opened <Age at={at} />. Programs in its terminal end; Slurm jobs continue.
        The person sees the reason and can log in again.
      </p>
    </WriteDialog>
  );
}
