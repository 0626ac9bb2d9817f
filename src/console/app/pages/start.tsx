/** A member's first day: three steps to a shell. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { AsCommand } from '../parts/copy.tsx';
import { KeyForm } from '../parts/key-form.tsx';
import { Empty, Loaded, Page } from '../parts/page.tsx';
import { type Key, LoginLines, LoginStrip } from '../parts/people/login.tsx';
import { State } from '../parts/state.tsx';
import { Age } from '../parts/time.tsx';
import { type ClusterItem, readClusters, readKeys, readSshAccess } from '../reads.ts';
import { useWho } from '../who.tsx';

export function StartPage() {
  const who = useWho();
  const keys = useQuery(readKeys());
  const clusters = useQuery(readClusters(who));
  const newest = keys.data?.keys.filter((key) => key.lifecycle_state === 'active').at(-1);
  const slurm = (clusters.data ?? []).filter(({ status }) => status.lifecycleState !== 'released');
  const answers = useQueries({ queries: slurm.map(({ id }) => readSshAccess(id, who)) });
  const open = slurm.filter((_, index) => answers[index]?.data?.ready);
  const isOpen = newest !== undefined && open.length > 0;
  return (
    <Page
      title={`Hello, ${who.me.user.display_name.split(' ')[0]}`}
      sentence={
        <Sentence
          hasKey={newest !== undefined}
          clusters={slurm}
          open={open.map(({ spec }) => spec.name)}
          isReady={keys.data !== undefined && clusters.data !== undefined}
        />
      }
    >
      <ol className="steps">
        <StepItem title="Your SSH key" isDone={newest !== undefined}>
          <Loaded of={keys}>{() => (newest ? <Registered newest={newest} /> : <KeyForm />)}</Loaded>
          <AsCommand cli="andromeda keys add ~/.ssh/id_ed25519.pub" operation="POST /me/ssh-keys" />
          <p className="soft small">
            For the <code>andromeda</code> command: <a href="/download">download the client</a>.
          </p>
        </StepItem>
        <StepItem title="Access on the clusters" isDone={isOpen}>
          {newest ? (
            <EachCluster clusters={slurm}>
              {(cluster) => <ClusterProgress cluster={cluster} newest={newest} />}
            </EachCluster>
          ) : (
            <p className="soft">Starts when you have registered a key and takes a few seconds.</p>
          )}
        </StepItem>
        <StepItem title="Log in" isDone={isOpen}>
          {newest ? (
            <EachCluster clusters={slurm}>{(cluster) => <LogIn cluster={cluster} />}</EachCluster>
          ) : (
            <p className="soft">The command for your terminal will appear here.</p>
          )}
        </StepItem>
      </ol>
    </Page>
  );
}

function Registered({ newest }: { newest: Key }) {
  return (
    <p>
      <State kind="good">Registered</State> <code className="cut">{newest.fingerprint}</code>{' '}
      <span className="soft">
        <Age at={newest.created_at} />
      </span>{' '}
      <Link to="/keys">All keys</Link>
    </p>
  );
}

interface SentenceOptions {
  hasKey: boolean;
  clusters: readonly ClusterItem[];
  open: readonly string[];
  isReady: boolean;
}

function Sentence({ hasKey, clusters, open, isReady }: SentenceOptions) {
  const { orgID } = useWho();
  if (orgID === '') return <>You are not in an organization yet. Ask an owner to add you.</>;
  if (!isReady) return <>Loading…</>;
  if (!hasKey) return <>Three steps to a shell. First, register an SSH key.</>;
  if (clusters.length === 0) return <>You cannot see any clusters yet. Ask an owner of your organization.</>;
  if (open.length === 0) return <>Your key is registered and is being applied.</>;
  return (
    <>
      You can log in to <b>{new Intl.ListFormat('en').format(open)}</b>.
    </>
  );
}

function StepItem({ title, isDone, children }: { title: string; isDone: boolean; children: ReactNode }) {
  return (
    <li className={isDone ? 'step done' : 'step'}>
      <h2>{title}</h2>
      <div>{children}</div>
    </li>
  );
}

interface EachOptions {
  clusters: readonly ClusterItem[];
  children: (cluster: ClusterItem) => ReactNode;
}

function EachCluster({ clusters, children }: EachOptions) {
  if (clusters.length === 0) return <Empty>You cannot see any clusters yet.</Empty>;
  return clusters.map((cluster) => <div key={cluster.id}>{children(cluster)}</div>);
}

function ClusterProgress({ cluster, newest }: { cluster: ClusterItem; newest: Key }) {
  const access = useQuery(readSshAccess(cluster.id, useWho()));
  // A cluster with Kubernetes only has no logins to wait for.
  if (access.data === null || access.data?.hostname === '') return null;
  return (
    <>
      <h3>{cluster.spec.name}</h3>
      <Loaded of={access}>
        {(known) => known && <LoginStrip cluster={cluster} access={known} newest={newest} />}
      </Loaded>
    </>
  );
}

function LogIn({ cluster }: { cluster: ClusterItem }) {
  const { data } = useQuery(readSshAccess(cluster.id, useWho()));
  const { name } = cluster.spec;
  if (data === undefined) return null;
  if (data === null) {
    return (
      <p>
        <State kind="none">{name}</State>: you have no SSH access. Ask an owner of your organization for{' '}
        <code>clusters.ssh</code>.
      </p>
    );
  }
  if (data.hostname === '') {
    return (
      <p>
        <State kind="none">{name}</State>: Kubernetes only, so there is no SSH.{' '}
        <code>andromeda kubeconfig {name}</code> writes what kubectl needs.
      </p>
    );
  }
  return (
    <>
      <h3>
        {name} {data.ready ? <State kind="good">Ready</State> : <State kind="busy">Not ready</State>}
      </h3>
      <LoginLines cluster={cluster} access={data} />
    </>
  );
}
