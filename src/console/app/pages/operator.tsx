/** For operators: is everything converged, and what must I mend; who is on. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../api/business.ts';
import { bodyOf, business } from '../api.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { type Kind, State } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Age, Reported } from '../parts/time.tsx';
import { WriteForm, type WriteHeaders } from '../parts/write.tsx';
import { readOpenSessions, readOperatorClusters } from '../reads.ts';

type Cluster = components['schemas']['OperatorCluster'];
type Session = components['schemas']['Session'];

function stateOf({ cluster, access_list: list, failure }: Cluster): { kind: Kind; text: string } {
  if (cluster.state === 'released') return { kind: 'none', text: 'Released' };
  if (failure !== null) return { kind: 'bad', text: 'Needs you' };
  if (list && ['failed', 'rejected'].includes(list.state)) return { kind: 'bad', text: list.state };
  if (list?.state === 'stale') return { kind: 'warn', text: 'Stale' };
  if (cluster.state !== 'active' || (list && list.state !== 'converged'))
    return { kind: 'busy', text: 'On its way' };
  return { kind: 'good', text: 'Converged' };
}

export function OperatorPage() {
  const clusters = useQuery(readOperatorClusters());
  const list = clusters.data?.clusters ?? [];
  const bad = list.filter((one) => stateOf(one).kind === 'bad');
  const busy = list.filter((one) => ['busy', 'warn'].includes(stateOf(one).kind));
  return (
    <Page
      title="Installation"
      isWide
      sentence={
        clusters.data &&
        (bad.length > 0
          ? `${bad.length} of ${list.length} clusters need you.`
          : busy.length > 0
            ? `${busy.length} of ${list.length} clusters are on their way; nothing needs you.`
            : `All ${list.length} clusters have what they should have.`)
      }
    >
      <Panel
        title="Clusters"
        tools={
          <AsCommand api="Business" cli="andromeda admin cluster list" operation="GET /operator/clusters" />
        }
      >
        <Loaded of={clusters}>{() => <ClusterTable clusters={list} />}</Loaded>
      </Panel>
      <Sessions />
    </Page>
  );
}

function ClusterTable({ clusters }: { clusters: readonly Cluster[] }) {
  return (
    <Table
      name="clusters"
      rows={clusters}
      id={({ cluster }) => cluster.id}
      text={({ name, organization_slug: slug, site, failure }) =>
        `${name} ${slug} ${site.name} ${failure ?? ''}`
      }
      columns={[
        { name: 'Cluster', cell: ({ name }) => name },
        { name: 'Organization', cell: (one) => one.organization_slug },
        {
          name: 'State',
          cell: (one) => {
            const { kind, text } = stateOf(one);
            return <State kind={kind}>{text}</State>;
          },
        },
        { name: 'Drivers', cell: ({ drivers }) => drivers.join(', ') || 'none' },
        { name: 'List', isNumber: true, cell: (one) => one.access_list?.generation ?? '–' },
        {
          name: 'Reported',
          cell: ({ cluster, observed_at: at }) => <Reported clusterId={cluster.id} at={at ?? undefined} />,
        },
        { name: 'What to mend', cell: ({ failure }) => failure ?? <span className="soft">nothing</span> },
      ]}
    />
  );
}

function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

function Sessions() {
  const sessions = useQuery(readOpenSessions());
  const clusters = useQuery(readOperatorClusters());
  const [closing, setClosing] = useState<Session>();
  const names = new Map(clusters.data?.clusters.map(({ cluster, name }) => [cluster.id, name]));
  return (
    <Panel
      title="Open SSH sessions"
      tools={
        <AsCommand api="Business" cli="andromeda admin sessions list" operation="GET /operator/sessions" />
      }
    >
      <Loaded of={sessions}>
        {({ sessions: list }) =>
          list.length === 0 ? (
            <Empty>Nobody is logged in through the gateway.</Empty>
          ) : (
            <Table
              name="sessions"
              rows={list}
              id={(one) => one.id}
              text={(one) =>
                `${one.username} ${names.get(one.cluster_id)} ${one.remote_address} ${one.login_node}`
              }
              columns={[
                { name: 'User', cell: (one) => one.username },
                { name: 'Cluster', cell: (one) => names.get(one.cluster_id) ?? one.cluster_id },
                { name: 'From', cell: (one) => one.remote_address },
                { name: 'Since', cell: (one) => <Age at={one.opened_at} past="" /> },
                { name: 'Up', isNumber: true, cell: (one) => size(one.bytes_up) },
                { name: 'Down', isNumber: true, cell: (one) => size(one.bytes_down) },
                {
                  name: 'Do',
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
      <button type="button" className="link small" onClick={() => void sessions.refetch()}>
        Look again
      </button>
      {closing && <Close session={closing} close={() => setClosing(undefined)} />}
    </Panel>
  );
}

function Close({ session, close }: { session: Session; close: () => void }) {
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST('/operator/sessions/{sessionID}/close', { params: { path: { sessionID: session.id }, header } })
      .then(bodyOf);
  return (
    <Dialog title={`Close the session of ${session.username}?`} onClose={close}>
      <p>The person is told the reason. What runs in the session ends.</p>
      <WriteForm
        write={{ form: `sessions.close.${session.id}`, send, topics: ['installation'], onDone: close }}
        body={{}}
        label="Close the session"
        danger
        cancel={close}
      />
    </Dialog>
  );
}
