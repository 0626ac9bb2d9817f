/** For operators: the SSH sessions that are open, and closing one. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { formatBytes } from '../../../domain/units.ts';
import { bodyOf, business } from '../api.ts';
import { count } from '../count.ts';
import { readOpenSessions, type Session } from '../operator.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { WriteForm, type WriteHeaders } from '../parts/write.tsx';
import { readOperatorClusters } from '../reads.ts';
import { holdsStaff, useWho } from '../who.tsx';

/** How long the gateway may take to end a session that was closed. */
const endsWithinMs = 2_000;

export function WhoIsOnPage() {
  const sessions = useQuery(readOpenSessions());
  const { filter } = useSearch({ from: '/frame/who' });
  const navigate = useNavigate({ from: '/who' });
  const clusterName = useClusterNames();
  const [closing, setClosing] = useState<Session>();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const finish = ({ id }: Session) => {
    setClosed(new Set([...closed, id]));
    setClosing(undefined);
    setTimeout(() => void sessions.refetch(), endsWithinMs);
  };
  const columns = useColumns(clusterName, closed, setClosing);
  return (
    <Page
      title="Active sessions"
      sentence={sessions.data && <Sentence sessions={sessions.data} />}
      actions={<ReadAgain of={sessions} />}
    >
      <Panel
        title="Active SSH sessions"
        tools={
          <AsCommand api="Business" cli="andromeda admin session list" operation="GET /operator/sessions" />
        }
      >
        <Loaded of={sessions}>
          {(list) =>
            list.length === 0 ? (
              <Empty>No one is logged in through the gateway.</Empty>
            ) : (
              <Table
                name="sessions"
                rows={list}
                id={({ id }) => id}
                text={(one) =>
                  `${one.username} ${clusterName(one)} ${one.remote_address} ${one.login_node} ${one.fingerprint}`
                }
                filter={filter ?? ''}
                onFilter={(text) => void navigate({ search: text ? { filter: text } : {}, replace: true })}
                columns={columns}
              />
            )
          }
        </Loaded>
      </Panel>
      {closing && (
        <Close
          session={closing}
          cluster={clusterName(closing)}
          cancel={() => setClosing(undefined)}
          onDone={() => finish(closing)}
        />
      )}
    </Page>
  );
}

/** What a session's cluster is called; its ID where that is not known yet. */
function useClusterNames(): (session: Session) => string {
  const { data } = useQuery(readOperatorClusters());
  const names = new Map(data?.clusters.map(({ cluster, name }) => [cluster.id, name]));
  return ({ cluster_id: id }) => names.get(id) ?? id;
}

function Sentence({ sessions }: { sessions: readonly Session[] }) {
  const [oldest] = sessions;
  if (!oldest) return <>No active sessions.</>;
  const people = new Set(sessions.map((one) => one.user_id)).size;
  const clusters = new Set(sessions.map((one) => one.cluster_id)).size;
  return (
    <>
      {count(people, 'person', 'people')} in {count(sessions.length, 'session', 'sessions')} on{' '}
      {count(clusters, 'cluster', 'clusters')}; the oldest was opened <Age at={oldest.opened_at} />.
    </>
  );
}

/** Who comes and goes is live; how much passed is as of when it was read. */
function ReadAgain({ of }: { of: UseQueryResult }) {
  if (of.dataUpdatedAt === 0) return null;
  return (
    <p className="as-of">
      As of <Age at={new Date(of.dataUpdatedAt).toISOString()} />{' '}
      <button type="button" className="second small" onClick={() => void of.refetch()}>
        Refresh
      </button>
    </p>
  );
}

function useColumns(
  clusterName: (session: Session) => string,
  closed: ReadonlySet<string>,
  close: (session: Session) => void,
): Column<Session>[] {
  const who = useWho();
  const mayAudit = holdsStaff(who, 'staff.audit');
  return [
    {
      name: 'Person',
      cell: (one) =>
        mayAudit ? (
          <Link to="/audit" search={{ person: one.user_id }} title="What they did">
            {one.username}
          </Link>
        ) : (
          one.username
        ),
    },
    { name: 'Cluster', cell: (one) => clusterName(one) },
    { name: 'Opened', cell: (one) => <Age at={one.opened_at} /> },
    { name: 'From', cell: (one) => one.remote_address },
    { name: 'Login node', cell: (one) => one.login_node },
    { name: 'Sent', isNumber: true, cell: (one) => formatBytes(one.bytes_up) },
    { name: 'Received', isNumber: true, cell: (one) => formatBytes(one.bytes_down) },
    ...(holdsStaff(who, 'staff.operate')
      ? [
          {
            name: 'Actions',
            cell: (one: Session) =>
              closed.has(one.id) ? (
                <State kind="busy">Closing…</State>
              ) : (
                <button
                  type="button"
                  className="second small"
                  aria-label={`Close the session of ${one.username}`}
                  onClick={() => close(one)}
                >
                  Close…
                </button>
              ),
          },
        ]
      : []),
  ];
}

function Close({
  session,
  cluster,
  cancel,
  onDone,
}: {
  session: Session;
  cluster: string;
  cancel: () => void;
  onDone: () => void;
}) {
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST('/operator/sessions/{sessionID}/close', { params: { path: { sessionID: session.id }, header } })
      .then(bodyOf);
  return (
    <Dialog title={`Close the session of ${session.username}?`} onClose={cancel}>
      <p>
        On {cluster}, from {session.remote_address}, opened <Age at={session.opened_at} />. Programs in its
        terminal end; Slurm jobs continue. The person sees the reason and can log in again.
      </p>
      <WriteForm
        write={{ form: `session.close.${session.id}`, send, topics: ['ssh-sessions'], onDone }}
        body={{}}
        label="Close the session"
        danger
        cancel={cancel}
      />
    </Dialog>
  );
}
