/** A person's own SSH sessions, and closing them. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { operation } from '../api.ts';
import { useClusterNames } from '../cluster-names.ts';
import { readMySshSessions } from '../reads.ts';
import { Panel } from './page.tsx';
import { actionOf, type Column, Table } from './table.tsx';
import { Age } from './time.tsx';
import { WriteDialog } from './write.tsx';

type Session = components['schemas']['Session'];

export function OwnSessions() {
  const sessions = useQuery(readMySshSessions());
  const names = useClusterNames();
  const [closing, setClosing] = useState<Session>();
  const columns: Column<Session>[] = [
    { name: 'Cluster', cell: (one) => names.get(one.cluster_id) ?? one.cluster_id },
    { name: 'From', cell: (one) => one.remote_address },
    { name: 'Key', cell: (one) => <code className="cut">{one.fingerprint}</code> },
    { name: 'Since', cell: (one) => <Age at={one.opened_at} past="" /> },
    actionOf('Close…', setClosing),
  ];
  return (
    <Panel title="My active SSH sessions" operation="GET /me/ssh-sessions">
      <Table
        name="your sessions"
        of={sessions}
        rows={sessions.data?.sessions}
        id={(one) => one.id}
        columns={columns}
        none={<p className="soft">You have no active sessions.</p>}
      />
      <p className="small">
        <Link to="/past/mine">Ended sessions</Link>
      </p>
      {closing && <CloseOwn session={closing} close={() => setClosing(undefined)} />}
    </Panel>
  );
}

function CloseOwn({ session, close }: { session: Session; close: () => void }) {
  return (
    <WriteDialog
      title="Close this session?"
      operation={operation('post', '/me/ssh-sessions/{sessionID}/close', { sessionID: session.id })}
      topics={['my-ssh-sessions']}
      body={{}}
      label="Close the session"
      usualReason="No longer needed"
      danger
      close={close}
    >
      <p>From {session.remote_address}. Programs that run in it end; submitted jobs continue.</p>
    </WriteDialog>
  );
}
