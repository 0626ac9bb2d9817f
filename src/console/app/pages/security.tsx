/** A person's SSH sessions and browser sessions, and the forms to end them. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { operation, own, queryClient } from '../api.ts';
import { Button, Page, Panel, Problem, said } from '../parts/page.tsx';
import { actionOf, type Column, Table } from '../parts/table.tsx';
import { Age, State } from '../parts/values.tsx';
import { WriteDialog } from '../parts/write.tsx';
import { type BrowserSession, readMySshSessions, readSessions, useClusterNames } from '../reads.ts';

export function SecurityPage() {
  const sessions = useQuery(readSessions());
  const ending = useMutation({
    mutationFn: (id: string) => own('POST', id === '' ? '/sessions/end-others' : `/sessions/${id}/end`),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['sessions'] }),
  });
  const end = actionOf<BrowserSession>('Sign out', ({ id }) => ending.mutate(id));
  const count = sessions.data?.sessions.length ?? 0;
  return (
    <Page
      title="Sessions"
      sentence={said(sessions, () =>
        count === 1
          ? 'You are signed in with this browser only.'
          : `You are signed in with ${count} browsers. Sign out any that you do not recognize.`,
      )}
      actions={
        count > 1 && (
          <Button className="danger" onClick={() => ending.mutate('')}>
            Sign out all others
          </Button>
        )
      }
    >
      {ending.error && <Problem error={ending.error} />}
      <OwnSessions />
      <Panel title="Browsers">
        <Table
          name="sign-ins"
          of={sessions}
          rows={sessions.data?.sessions}
          id={(one) => one.id}
          columns={[...columns, { ...end, cell: (one) => (one.current ? thisBrowser : end.cell(one)) }]}
        />
        <p className="soft small">
          A sign-in ends after an hour without use, after twelve hours at most, and when your password
          changes. Terminals are signed out with <code>andromeda auth logout</code>.
        </p>
      </Panel>
    </Page>
  );
}

const columns: Column<BrowserSession>[] = [
  { name: 'Browser', cell: (one) => <b>{browserOf(one.program)}</b> },
  { name: 'IP address', cell: (one) => one.address },
  { name: 'Signed in', cell: (one) => <Age at={one.signedInAt} /> },
  { name: 'Last used', cell: (one) => <Age at={one.usedAt} /> },
];

const thisBrowser = <State kind="good">This browser</State>;

const browsers = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari'] as const;
const systems = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS', 'Linux'] as const;

function browserOf(program: string): string {
  const browser = browsers.find((one) => program.includes(`${one}/`));
  const system = systems.find((one) => program.includes(one));
  if (!browser) return program.slice(0, 60) || 'Unknown';
  const name = { Edg: 'Edge', OPR: 'Opera', Firefox: 'Firefox', Chrome: 'Chrome', Safari: 'Safari' }[browser];
  return system ? `${name} on ${system}` : name;
}

type Session = components['schemas']['Session'];

function OwnSessions() {
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
