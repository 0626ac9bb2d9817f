/** "Why can I not log in?": for each cluster the one obstacle, and the one thing to do. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { AskAccess, OwnAccess, type Wish } from '../parts/access-requests.tsx';
import { AsCommand } from '../parts/copy.tsx';
import { Loaded, NoClusters, Page, Panel } from '../parts/page.tsx';
import { LoginLines, LoginStrip } from '../parts/people/login.tsx';
import { State } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Age, Moment, Reported } from '../parts/time.tsx';
import {
  type ClusterItem,
  readClusters,
  readKeys,
  readMyRefusals,
  readSshAccess,
  type SshAccess,
} from '../reads.ts';
import { obstacleOf } from '../ssh.ts';
import { useWho } from '../who.tsx';

export function AccessPage() {
  const clusters = useQuery(readClusters(useWho()));
  const [wish, setWish] = useState<Wish>();
  return (
    <Page title="My access" sentence={clusters.data && <Sentence clusters={clusters.data} />}>
      <Loaded of={clusters}>
        {(list) =>
          list.length === 0 ? (
            <NoClusters />
          ) : (
            list.map((cluster) => <ClusterAccess key={cluster.id} cluster={cluster} ask={setWish} />)
          )
        }
      </Loaded>
      <OwnAccess clusters={clusters.data ?? []} ask={setWish} />
      <Refusals clusters={clusters.data ?? []} />
      {wish && <AskAccess wish={wish} close={() => setWish(undefined)} />}
    </Page>
  );
}

function Sentence({ clusters }: { clusters: readonly ClusterItem[] }) {
  const who = useWho();
  const answers = useQueries({ queries: clusters.map(({ id }) => readSshAccess(id, who)) });
  if (answers.some(({ data }) => data === undefined)) return <>Loading…</>;
  const withLogins = answers.map(({ data }) => data).filter((one) => one && one.hostname !== '');
  const ready = withLogins.filter((one) => one?.ready).length;
  if (withLogins.length === 0) return <>You have no cluster with SSH access.</>;
  if (ready === withLogins.length)
    return <>You can log in to {ready === 1 ? 'your cluster' : `all ${ready} clusters`}.</>;
  return (
    <>
      You can log in to {ready} of {withLogins.length} {withLogins.length === 1 ? 'cluster' : 'clusters'}.
      What is missing is shown below.
    </>
  );
}

function ClusterAccess({ cluster, ask }: { cluster: ClusterItem; ask: (wish: Wish) => void }) {
  const who = useWho();
  const { orgID } = who;
  const { name } = cluster.spec;
  const access = useQuery(readSshAccess(cluster.id, who));
  const keys = useQuery(readKeys());
  const newest = keys.data?.keys.filter((key) => key.lifecycle_state === 'active').at(-1);
  return (
    <Panel
      title={name}
      tools={
        <AsCommand
          api="Platform"
          cli={`andromeda clusters show ${name}`}
          operation={`GET /clusters/${cluster.id}/ssh-access?organizationId=${orgID}`}
        />
      }
    >
      <Loaded of={access}>
        {(known) =>
          known === null ? (
            <NoPermission ask={() => ask({ keys: ['clusters.ssh'], cluster })} />
          ) : known.hostname === '' ? (
            <p>
              <State kind="none">No SSH</State> This cluster runs Kubernetes only. Use kubectl:{' '}
              <code>andromeda kubeconfig {name}</code>.
            </p>
          ) : (
            <>
              <Verdict access={known} name={name} />
              <LoginStrip cluster={cluster} access={known} newest={newest} />
              {known.access_expires_at && (
                <p>
                  Your access ends <Moment at={known.access_expires_at} />.{' '}
                  <button
                    type="button"
                    className="second small"
                    onClick={() => ask({ keys: ['clusters.ssh'], cluster })}
                  >
                    Extend…
                  </button>
                </p>
              )}
              {known.ready && <LoginLines cluster={cluster} access={known} />}
              <Facts access={known} clusterId={cluster.id} />
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

function NoPermission({ ask }: { ask: () => void }) {
  return (
    <>
      <p>
        <State kind="warn">No access</State> You do not have the permission <code>clusters.ssh</code>.
      </p>
      <p>
        <button type="button" onClick={ask}>
          Request SSH access…
        </button>
      </p>
    </>
  );
}

function Verdict({ access, name }: { access: SshAccess; name: string }) {
  const obstacle = obstacleOf(access, name);
  if (!obstacle) {
    return (
      <p className="verdict">
        <State kind="good">Ready</State> All your keys work.
      </p>
    );
  }
  return (
    <p className="verdict">
      <State kind={obstacle.kind}>Not ready</State> <b>{obstacle.sentence}</b>{' '}
      {access.reason === 'no_keys' ? <Link to="/keys">{obstacle.advice}</Link> : obstacle.advice}
    </p>
  );
}

function Facts({ access, clusterId }: { access: SshAccess; clusterId: string }) {
  return (
    <dl className="facts">
      <div>
        <dt>User name</dt>
        <dd>{access.username || '–'}</dd>
      </div>
      <div>
        <dt>Shell</dt>
        <dd>{access.shell || '–'}</dd>
      </div>
      <div>
        <dt>Last report</dt>
        <dd>
          <Reported clusterId={clusterId} at={access.observed_at} />
        </dd>
      </div>
      <div>
        <dt>Access list</dt>
        <dd>
          {access.observed_manifest_generation} of {access.manifest_generation} applied
        </dd>
      </div>
    </dl>
  );
}

function Refusals({ clusters }: { clusters: readonly ClusterItem[] }) {
  const refusals = useQuery(readMyRefusals());
  const names = new Map(clusters.map(({ id, spec }) => [id, spec.name]));
  return (
    <Panel
      title="Recently refused logins"
      tools={
        <AsCommand
          api="Business"
          cli="andromeda call business GET /me/ssh-refusals"
          operation="GET /me/ssh-refusals"
        />
      }
    >
      <Loaded of={refusals}>
        {({ refusals: list }) =>
          list.length === 0 ? (
            <p className="soft">
              No login with your keys was refused recently. Logins with unregistered keys are not listed.
            </p>
          ) : (
            <Table
              name="refused logins"
              rows={list}
              id={(one) => `${one.at} ${one.key_id}`}
              columns={[
                { name: 'When', cell: (one) => <Age at={one.at} /> },
                { name: 'Cluster', cell: (one) => names.get(one.cluster_id ?? '') ?? '–' },
                { name: 'From', cell: (one) => one.source_address },
                { name: 'Reason', cell: (one) => one.message },
              ]}
            />
          )
        }
      </Loaded>
      <button type="button" className="link small" onClick={() => void refusals.refetch()}>
        Refresh
      </button>
    </Panel>
  );
}
