/** SSH sessions that are over: everybody's for operators who may read the trail, and one's own. The filters are in the address. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { count } from '../count.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Filters } from '../parts/filters.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { SaveAll } from '../parts/save-all.tsx';
import { PastTable, textOfSession } from '../parts/session-table.tsx';
import { Age } from '../parts/time.tsx';
import { readClusters, readOperatorClusters } from '../reads.ts';
import {
  fetchSessions,
  type PastSession,
  readPastSessions,
  type SessionSearch,
  sessionPageSize,
  sessionQuery,
  sessionSearch,
  type Whose,
} from '../sessions.ts';
import { holdsStaff, useWho } from '../who.tsx';

export function PastSessionsPage() {
  return <PastSessions whose="all" search={useSearch({ from: '/frame/past' })} />;
}

export function MyPastSessionsPage() {
  return <PastSessions whose="own" search={useSearch({ from: '/frame/past/mine' })} />;
}

const paths = { all: '/past', own: '/past/mine' } as const;

function PastSessions({ whose, search }: { whose: Whose; search: SessionSearch }) {
  const to = paths[whose];
  const navigate = useNavigate({ from: to });
  const past = useQuery(readPastSessions(whose, search));
  const clusterName = useClusterNames(whose);
  const wanted = (search.filter ?? '').toLowerCase();
  const show = (wish: SessionSearch, replace = false) => void navigate({ to, search: wish, replace });
  return (
    <Page
      title={whose === 'own' ? 'My session history' : 'Ended sessions'}
      isWide
      sentence={past.data && <Sentence sessions={past.data} whose={whose} />}
    >
      <Filters
        key={JSON.stringify(search)}
        fields={whose === 'own' ? days : [...about, ...days]}
        values={{ ...search }}
        onSubmit={(typed) => show(sessionSearch(typed))}
        clear={
          <Link to={to} className="clear">
            Clear
          </Link>
        }
      />
      <Panel
        title="Ended SSH sessions"
        tools={
          <>
            <SaveAll
              name="sessions"
              pages={(signal) => pagesOf(whose, search, signal)}
              isWanted={(one) => textOfSession(one, clusterName).toLowerCase().includes(wanted)}
              columns={columnsOfFile}
              cells={cellsOf}
            />
            <Commands whose={whose} search={search} />
          </>
        }
      >
        <Loaded of={past}>
          {(list) =>
            list.length === 0 ? (
              <Empty action={<Link to={to}>Show all</Link>}>No ended session matches these filters.</Empty>
            ) : (
              <PastTable
                sessions={list}
                whose={whose}
                clusterName={clusterName}
                filter={search.filter ?? ''}
                onFilter={(text) => show({ ...search, filter: text || undefined }, true)}
              />
            )
          }
        </Loaded>
        <Pages list={past.data ?? []} search={search} to={to} />
      </Panel>
    </Page>
  );
}

const about = [
  { name: 'person', label: 'Person', type: 'text', hint: 'Address or ID' },
  { name: 'cluster', label: 'Cluster', type: 'text', hint: 'Name or ID' },
  { name: 'address', label: 'Source address', type: 'text', hint: 'IP address' },
  { name: 'key', label: 'Key', type: 'text', hint: 'Fingerprint or ID' },
] as const;
const days = [
  { name: 'from', label: 'Open after', type: 'date', hint: '' },
  { name: 'to', label: 'Open before', type: 'date', hint: '' },
] as const;

/** What a session's cluster is called; its ID where that is not known. */
function useClusterNames(whose: Whose): (session: PastSession) => string {
  const who = useWho();
  const isOwn = whose === 'own';
  const all = useQuery({ ...readOperatorClusters(), enabled: !isOwn && holdsStaff(who, 'staff.read') });
  const own = useQuery({ ...readClusters(who), enabled: isOwn });
  const names = new Map([
    ...(all.data?.clusters ?? []).map(({ cluster, name }) => [cluster.id, name] as const),
    ...(own.data ?? []).map(({ id, spec }) => [id, spec.name] as const),
  ]);
  return ({ cluster_id: id }) => names.get(id) ?? id;
}

function Sentence({ sessions, whose }: { sessions: readonly PastSession[]; whose: Whose }) {
  const [last] = sessions;
  if (!last) return <>No session matches.</>;
  const people = new Set(sessions.map((one) => one.user_id)).size;
  return (
    <>
      The latest ended <Age at={last.closed_at} />. This page shows{' '}
      {count(sessions.length, 'session', 'sessions')}
      {whose === 'all' && ` of ${count(people, 'person', 'people')}`}.
    </>
  );
}

function Pages({
  list,
  search,
  to,
}: {
  list: readonly PastSession[];
  search: SessionSearch;
  to: (typeof paths)[Whose];
}) {
  const { before, ...rest } = search;
  const last = list.at(-1);
  const hasOlder = list.length === sessionPageSize && last !== undefined;
  if (before === undefined && !hasOlder) return null;
  return (
    <nav className="pages" aria-label="Pages of sessions">
      {before !== undefined && (
        <Link to={to} search={rest}>
          Newest
        </Link>
      )}
      {hasOlder && (
        <Link to={to} search={{ ...rest, before: last.seq }}>
          Older
        </Link>
      )}
    </nav>
  );
}

function Commands({ whose, search }: { whose: Whose; search: SessionSearch }) {
  const { limit: _page, after: _before, ...query } = sessionQuery(search, whose);
  const given = Object.entries(query).map(([name, value]) => [name, String(value)] as const);
  const path = whose === 'own' ? '/me/ssh-sessions/past' : '/operator/sessions/past';
  const text = given.length === 0 ? path : `${path}?${new URLSearchParams(given.map((one) => [...one]))}`;
  const flags = given.map(([name, value]) => ` --${name} '${value.replaceAll("'", "'\\''")}'`).join('');
  const cli =
    whose === 'own' ? `andromeda call business GET '${text}'` : `andromeda admin session past${flags}`;
  return <AsCommand api="Business" cli={cli} operation={`GET ${text}`} />;
}

/** Few enough that the server answers others in between. */
const exportPageSize = 250;

/** From the page that is shown on, page by page. */
async function* pagesOf(
  whose: Whose,
  search: SessionSearch,
  signal: AbortSignal,
): AsyncGenerator<readonly PastSession[]> {
  let before = search.before;
  for (;;) {
    const query = { ...sessionQuery({ ...search, before }, whose), limit: exportPageSize };
    const page = await fetchSessions(whose, query, signal);
    yield page;
    before = page.at(-1)?.seq;
    if (page.length < exportPageSize) return;
  }
}

const columnsOfFile = [
  ...['seq', 'id', 'username', 'user_id', 'cluster_id', 'login_node', 'remote_address', 'key_id'],
  ...['fingerprint', 'opened_at', 'closed_at', 'end_reason', 'bytes_up', 'bytes_down', 'channels', 'shells'],
  ...['file_transfers', 'command_count', 'commands', 'forward_count', 'forwards'],
] as (keyof PastSession)[];

function cellsOf(one: PastSession): (string | number)[] {
  return columnsOfFile.map((name) => {
    const value = one[name] ?? '';
    return Array.isArray(value) ? value.join('\n') : value;
  });
}
