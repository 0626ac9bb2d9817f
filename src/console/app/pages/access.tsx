/** "Why can I not log in?": for each cluster the one obstacle, and the one thing to do. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useClusterNames } from '../cluster-names.ts';
import { count } from '../count.ts';
import { AskAccess, OwnAccess, type Wish } from '../parts/access-requests.tsx';
import { Button } from '../parts/controls.tsx';
import { Facts, Loaded, NoClusters, Page, Panel } from '../parts/page.tsx';
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
    <Page title="Access" sentence={clusters.data && <Sentence clusters={clusters.data} />}>
      <Loaded of={clusters}>
        {(list) =>
          list.length === 0 ? (
            <NoClusters />
          ) : (
            list.map((cluster) => (
              <ClusterAccess
                key={cluster.id}
                cluster={cluster}
                ask={() => setWish({ keys: ['clusters.ssh'], cluster })}
              />
            ))
          )
        }
      </Loaded>
      <OwnAccess ask={setWish} />
      <Refusals />
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
  return `You can log in to ${ready} of ${count(withLogins.length, 'cluster')}. What is missing is shown below.`;
}

interface AccessOptions {
  cluster: ClusterItem;
  /** Asks for `clusters.ssh`. */
  ask: () => void;
}

function ClusterAccess({ cluster, ask }: AccessOptions) {
  const who = useWho();
  const { name } = cluster.spec;
  const access = useQuery(readSshAccess(cluster.id, who));
  return (
    <Panel
      title={name}
      cli={`andromeda clusters show ${name}`}
      operation={`GET /clusters/${cluster.id}/ssh-access?organizationId=${who.orgID}`}
    >
      <Loaded of={access}>
        {(known) => {
          if (known === null) return <NoPermission ask={ask} />;
          if (known.hostname !== '') return <Logins cluster={cluster} access={known} ask={ask} />;
          return (
            <p>
              <State kind="none">No SSH</State> This cluster runs Kubernetes only. Use kubectl:{' '}
              <code>andromeda kubeconfig {name}</code>.
            </p>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Logins({ cluster, access, ask }: AccessOptions & { access: SshAccess }) {
  const keys = useQuery(readKeys());
  const newest = keys.data?.keys.filter((key) => key.lifecycle_state === 'active').at(-1);
  return (
    <>
      <Verdict access={access} name={cluster.spec.name} />
      <LoginStrip cluster={cluster} access={access} newest={newest} />
      {access.access_expires_at && (
        <p>
          Your access ends <Moment at={access.access_expires_at} />.{' '}
          <Button className="second small" onClick={ask}>
            Extend…
          </Button>
        </p>
      )}
      {access.ready && <LoginLines cluster={cluster} access={access} />}
      <Facts
        of={{
          'User name': access.username || '–',
          Shell: access.shell || '–',
          'Last report': <Reported clusterId={cluster.id} at={access.observed_at} />,
          'Access list': `${access.observed_manifest_generation} of ${access.manifest_generation} applied`,
        }}
      />
    </>
  );
}

function NoPermission({ ask }: { ask: () => void }) {
  return (
    <>
      <p>
        <State kind="warn">No access</State> You do not have the permission <code>clusters.ssh</code>.
      </p>
      <p>
        <Button onClick={ask}>Request SSH access…</Button>
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

function Refusals() {
  const refusals = useQuery(readMyRefusals());
  const names = useClusterNames();
  return (
    <Panel title="Recently refused logins" operation="GET /me/ssh-refusals">
      <Table
        name="refused logins"
        of={refusals}
        rows={refusals.data?.refusals}
        id={(one) => `${one.at} ${one.key_id}`}
        columns={[
          { name: 'When', cell: (one) => <Age at={one.at} /> },
          { name: 'Cluster', cell: (one) => names.get(one.cluster_id ?? '') ?? '–' },
          { name: 'From', cell: (one) => one.source_address },
          { name: 'Reason', cell: (one) => one.message },
        ]}
        none={
          <p className="soft">
            No login with your keys was refused recently. Logins with unregistered keys are not listed.
          </p>
        }
      />
      <Button className="link small" onClick={() => void refusals.refetch()}>
        Refresh
      </Button>
    </Panel>
  );
}
