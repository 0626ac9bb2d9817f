/** For operators: the SSH sessions that are open, and closing one. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { formatBytes } from '../../../domain/units.ts';
import { operation } from '../api.ts';
import { useClusterNames } from '../cluster-names.ts';
import { count } from '../count.ts';
import { Button } from '../parts/controls.tsx';
import { Empty, Page, Panel, said } from '../parts/page.tsx';
import { State } from '../parts/state.tsx';
import { actionOf, type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { WriteDialog } from '../parts/write.tsx';
import { readOpenSessions } from '../reads.ts';
import { holdsStaff, useWho } from '../who.tsx';

type Session = components['schemas']['Session'];

/** How long the gateway may take to end a session that was closed. */
const endsWithinMs = 2_000;

export default function ActiveSessionsPage() {
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
      sentence={said(sessions, (data) => <Sentence sessions={data.sessions} />)}
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

function Sentence({ sessions }: { sessions: readonly Session[] }) {
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
