/** The start page: a person's use of each cluster, and the steps to a shell or to kubectl. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { AsCommand, Empty, Loaded, Page, said, together } from '../parts/page.tsx';
import { OwnJobs } from '../parts/people/jobs.tsx';
import {
  Kubeconfig,
  LoginLines,
  LoginStrip,
  type NewestKey,
  UseLine,
  UsesSentence,
} from '../parts/people/uses.tsx';
import { Age, State } from '../parts/values.tsx';
import { type ClusterUse, readKeys, readSshAccess, readUses, useWho } from '../reads.ts';
import { KeyForm } from './keys.tsx';

export function StartPage() {
  const who = useWho();
  const uses = useQuery(readUses(who));
  const keys = useQuery(readKeys());
  const newest = keys.data?.keys.filter((key) => key.lifecycle_state === 'active').at(-1);
  const both = together({ uses, keys });
  return (
    <Page
      title={`Hello, ${who.me.user.display_name.split(' ')[0]}`}
      sentence={
        both.data || both.error
          ? said(both, () => <Sentence uses={uses.data ?? []} hasKey={newest !== undefined} />)
          : 'Loading…'
      }
    >
      {who.me.notices?.map((notice) => (
        <p key={notice} className="notice">
          {notice}
        </p>
      ))}
      <Loaded of={uses}>
        {(all) =>
          all.length === 0 ? (
            <NoUses keys={keys} newest={newest} />
          ) : (
            <Steps uses={all} keys={keys} newest={newest} />
          )
        }
      </Loaded>
    </Page>
  );
}

function Sentence({ uses, hasKey }: { uses: readonly ClusterUse[]; hasKey: boolean }) {
  const { orgID } = useWho();
  if (orgID === '' && uses.length === 0)
    return <>You are not in an organization yet. Ask an owner to add you.</>;
  if (hasKey || !needsKey(uses)) return <UsesSentence uses={uses} />;
  if (uses.every(({ kubernetes }) => kubernetes.state !== 'ready'))
    return <>Three steps to a shell. First, register an SSH key.</>;
  return (
    <>
      <UsesSentence uses={uses} /> To log in over SSH, register a key.
    </>
  );
}

function needsKey(uses: readonly ClusterUse[]): boolean {
  return uses.some(({ ssh }) => ssh.granted);
}

/** For a person without access to a cluster, who can register a key already. */
function NoUses(key: KeyOptions) {
  const { orgID } = useWho();
  return (
    <>
      {orgID !== '' && (
        <Empty action={<Link to="/access">Request access</Link>}>
          There is no cluster that you can see or use yet. An owner or admin of your organization gives
          access.
        </Empty>
      )}
      <ol className="steps">
        <KeyStep {...key} />
      </ol>
    </>
  );
}

interface KeyOptions {
  keys: UseQueryResult<unknown>;
  newest: NewestKey | undefined;
}

function KeyStep({ keys, newest }: KeyOptions) {
  return (
    <StepItem title="Your SSH key" isDone={newest !== undefined}>
      <Loaded of={keys}>{() => (newest ? <Registered newest={newest} /> : <KeyForm />)}</Loaded>
      <AsCommand cli="andromeda keys add ~/.ssh/id_ed25519.pub" operation="POST /me/ssh-keys" />
      <p className="soft small">
        For the <code>andromeda</code> command: <a href="/download">download the client</a>.
      </p>
    </StepItem>
  );
}

function Steps({ uses, keys, newest }: KeyOptions & { uses: readonly ClusterUse[] }) {
  const hasSsh = needsKey(uses);
  const ready = uses.filter(({ ssh, kubernetes }) => ssh.state === 'ready' || kubernetes.state === 'ready');
  const isOpen = ready.length > 0;
  return (
    <ol className="steps">
      {hasSsh && <KeyStep keys={keys} newest={newest} />}
      <StepItem title="Access on the clusters" isDone={isOpen}>
        {uses.map((cluster) => (
          <Progress key={cluster.cluster_id} cluster={cluster} newest={newest} />
        ))}
        <AsCommand cli="andromeda access" operation="GET /me/access" />
      </StepItem>
      <StepItem title={hasSsh ? 'Log in' : 'Use kubectl'} isDone={isOpen}>
        {isOpen ? (
          ready.map((cluster) => <Ready key={cluster.cluster_id} cluster={cluster} />)
        ) : (
          <p className="soft">The command for your terminal will appear here.</p>
        )}
      </StepItem>
    </ol>
  );
}

function Registered({ newest }: { newest: NewestKey }) {
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

function StepItem({ title, isDone, children }: { title: string; isDone: boolean; children: ReactNode }) {
  return (
    <li className={isDone ? 'step done' : 'step'}>
      <h2>{title}</h2>
      <div>{children}</div>
    </li>
  );
}

/** The sides of a cluster that the person may use; the sides without access only if they may use none. */
function Progress({ cluster, newest }: { cluster: ClusterUse; newest: NewestKey | undefined }) {
  const { ssh, kubernetes } = cluster;
  const isNeither = !ssh.granted && !kubernetes.granted;
  const isShown = (use: ClusterUse['ssh']) => use.granted || (isNeither && use.state !== 'none');
  return (
    <>
      <h3>{cluster.cluster_name}</h3>
      {isShown(ssh) && <UseLine way="SSH" use={ssh} />}
      <LoginStrip cluster={cluster} newest={newest} />
      {isShown(kubernetes) && <UseLine way="Kubernetes" use={kubernetes} />}
    </>
  );
}

function Ready({ cluster }: { cluster: ClusterUse }) {
  const { ssh, kubernetes, cluster_name: name } = cluster;
  const hasLogin = ssh.state === 'ready';
  const access = useQuery({ ...readSshAccess(cluster), enabled: hasLogin });
  return (
    <>
      <h3>{name}</h3>
      {hasLogin && access.data && <LoginLines cluster={cluster} access={access.data} />}
      {hasLogin && access.data && <OwnJobs cluster={cluster} access={access.data} />}
      {kubernetes.state === 'ready' && <Kubeconfig cluster={cluster} />}
    </>
  );
}
