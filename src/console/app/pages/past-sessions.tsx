/** SSH sessions that have ended: everyone's for operators who may read the trail, and one's own. */
import { bodyOf, business } from '../api.ts';
import { useClusterNames, type Whose } from '../cluster-names.ts';
import { count } from '../count.ts';
import { columnsOf, type PastSession, textOfSession } from '../parts/session-table.tsx';
import { Age } from '../parts/time.tsx';
import { addressOf, flagsOf, TrailPage } from '../parts/trail.tsx';
import { ownSessionSearch, sessionSearch, type TrailQuery } from '../trail.ts';

const days = [
  { name: 'from', label: 'Open after' },
  { name: 'to', label: 'Open before' },
] as const;
const about = [
  { name: 'person', label: 'Person', hint: 'Address or ID' },
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
  ...(['forward_count', 'forwards'] as const),
];
