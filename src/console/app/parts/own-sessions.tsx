/** A person's own SSH sessions, and closing them. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { bodyOf, business } from '../api.ts';
import { readClusters, readMySshSessions } from '../reads.ts';
import { useWho } from '../who.tsx';
import { AsCommand } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { Loaded, Panel } from './page.tsx';
import { Table } from './table.tsx';
import { Age } from './time.tsx';
import { WriteForm, type WriteHeaders } from './write.tsx';

type Session = components['schemas']['Session'];

export function OwnSessions() {
  const who = useWho();
  const sessions = useQuery(readMySshSessions());
  const clusters = useQuery(readClusters(who));
  const [closing, setClosing] = useState<Session>();
  const names = new Map((clusters.data ?? []).map(({ id, spec }) => [id, spec.name]));
  return (
    <Panel
      title="My active SSH sessions"
      tools={
        <AsCommand
          api="Business"
          cli="andromeda call business GET /me/ssh-sessions"
          operation="GET /me/ssh-sessions"
        />
      }
    >
      <Loaded of={sessions}>
        {({ sessions: list }) =>
          list.length === 0 ? (
            <p className="soft">You have no active sessions.</p>
          ) : (
            <Table
              name="your sessions"
              rows={list}
              id={(one) => one.id}
              columns={[
                { name: 'Cluster', cell: (one) => names.get(one.cluster_id) ?? one.cluster_id },
                { name: 'From', cell: (one) => one.remote_address },
                { name: 'Key', cell: (one) => <code className="cut">{one.fingerprint}</code> },
                { name: 'Since', cell: (one) => <Age at={one.opened_at} past="" /> },
                {
                  name: 'Actions',
                  cell: (one) => (
                    <button type="button" className="second small" onClick={() => setClosing(one)}>
                      Close…
                    </button>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      <p className="small">
        <Link to="/past/mine">Ended sessions</Link>
      </p>
      {closing && <CloseOwn session={closing} close={() => setClosing(undefined)} />}
    </Panel>
  );
}

function CloseOwn({ session, close }: { session: Session; close: () => void }) {
  const params = { path: { sessionID: session.id } };
  const send = (_body: object, header: WriteHeaders) =>
    business.POST('/me/ssh-sessions/{sessionID}/close', { params: { ...params, header } }).then(bodyOf);
  return (
    <Dialog title="Close this session?" onClose={close}>
      <p>From {session.remote_address}. Programs that run in it end; submitted jobs continue.</p>
      <WriteForm
        write={{ form: `own-sessions.close.${session.id}`, send, topics: ['my-ssh-sessions'], onDone: close }}
        body={{}}
        label="Close the session"
        usualReason="No longer needed"
        danger
        cancel={close}
      />
    </Dialog>
  );
}
