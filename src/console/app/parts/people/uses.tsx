/** Texts about a person's use of clusters: the state of SSH and Kubernetes, the next step, and a summary sentence. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import {
  type ClusterUse,
  plainName,
  readKubeconfig,
  readSshAccess,
  type SshAccess,
  type Use,
} from '../../reads.ts';
import { Button, CopyLine, Loaded, Problem } from '../page.tsx';
import { save } from '../save.tsx';
import { type Step, Strip, stepsOf } from '../strip.tsx';
import { type Kind, State } from '../values.tsx';

const states: Record<Use['state'], [Kind, string]> = {
  ready: ['good', 'Ready'],
  missing: ['warn', 'Not ready'],
  pending: ['busy', 'Being applied'],
  failed: ['bad', 'Failed'],
  none: ['none', 'Not offered'],
};

const nextTexts: Partial<Record<NonNullable<Use['next']>, string>> = {
  manager: 'An owner or admin of the organization acts next.',
  operator: 'An operator acts next.',
};

export function UseLine({ way, use, children }: { way: string; use: Use; children?: ReactNode }) {
  const isLacking = use.state === 'missing' && !use.granted;
  const [kind, label] = isLacking ? (['none', 'No access'] as const) : states[use.state];
  const next = use.next && nextTexts[use.next];
  return (
    <p className="verdict">
      <b>{way}</b> <State kind={kind}>{label}</State>{' '}
      <span role={use.granted ? 'status' : undefined}>{use.message}</span>
      {next !== undefined && <span className="soft"> {next}</span>} {children}
    </p>
  );
}

/** `You can log in to alpha and use kubectl on beta.`; the missing step where no cluster is ready. */
export function UsesSentence({ uses }: { uses: readonly ClusterUse[] }) {
  const on = (way: 'ssh' | 'kubernetes') => uses.filter((use) => use[way].state === 'ready');
  const [ssh, kubectl] = [on('ssh'), on('kubernetes')];
  const [lacking] = uses.flatMap((use) => [use.ssh, use.kubernetes]).filter(({ granted }) => granted);
  if (ssh.length + kubectl.length === 0)
    return <>{lacking?.message ?? 'You have no access to a cluster yet. Request it on “Access”.'}</>;
  return (
    <>
      You can {ssh.length > 0 && <>log in to {<Names of={ssh} />}</>}
      {ssh.length > 0 && kubectl.length > 0 && ' and '}
      {kubectl.length > 0 && <>use kubectl on {<Names of={kubectl} />}</>}.
    </>
  );
}

const mostNamed = 5;

function Names({ of: uses }: { of: readonly ClusterUse[] }) {
  const names = uses.map(({ cluster_name: name }) => name);
  return (
    <b>{names.length > mostNamed ? `${names.length} clusters` : new Intl.ListFormat('en').format(names)}</b>
  );
}

export type NewestKey = { fingerprint: string; created_at: string };

function loginSteps({ state }: Use, access: SshAccess, key: NewestKey): Step[] {
  const isAccepted = access.reason !== 'access_not_projected' && access.manifest_generation > 0;
  const isApplied = isAccepted && access.key_fingerprints.includes(key.fingerprint);
  return stepsOf(state === 'failed' ? 'failed' : 'busy', [
    { name: 'Key registered', isDone: true, at: key.created_at },
    { name: 'Sent to the cluster', isDone: isAccepted },
    { name: 'Key applied', isDone: isApplied },
    { name: 'Login ready', isDone: isApplied && access.ready },
  ]);
}

export function LoginStrip({ cluster, newest }: { cluster: ClusterUse; newest: NewestKey | undefined }) {
  const { ssh, cluster_id: id } = cluster;
  const isOnItsWay = newest !== undefined && ssh.granted && ssh.state !== 'missing';
  const access = useQuery({ ...readSshAccess(cluster), enabled: isOnItsWay });
  if (!isOnItsWay || !access.data) return null;
  return <Strip of={`login/${id}/${newest.fingerprint}`} steps={loginSteps(ssh, access.data, newest)} />;
}

export function LoginLines({ cluster, access }: { cluster: ClusterUse; access: SshAccess }) {
  if (access.hostname === '' || access.username === '') return null;
  const host = access.port === 22 ? access.hostname : `[${access.hostname}]:${access.port}`;
  const { cluster_name: name } = cluster;
  return (
    <>
      <CopyLine text={sshLine(cluster, access)} label={`log in to ${name}`} />
      <details>
        <summary>SSH config, VS Code, host key</summary>
        <h3>~/.ssh/config</h3>
        <CopyLine text={sshBlock(cluster, access)} label={`ssh configuration of ${name}`} />
        <p className="soft">
          Then <code>ssh {aliasOf(cluster)}</code> is enough, for scp and rsync too. In VS Code: “Remote-SSH:
          Connect to Host…”, and choose <code>{aliasOf(cluster)}</code>.
        </p>
        <h3>~/.ssh/known_hosts</h3>
        <CopyLine text={`${host} ${access.host_key}`} label={`host key of the gateway to ${name}`} />
        <p className="soft">
          Or compare the fingerprint when ssh asks: <code>{access.host_key_fingerprint}</code>
        </p>
      </details>
    </>
  );
}

export function aliasOf(cluster: ClusterUse): string {
  return `andromeda-${plainName(cluster)}`;
}

/** The ssh command for a terminal. The suffix `+4711` of the login name leads into that job. */
export function sshLine(
  { cluster_id: id }: ClusterUse,
  { hostname, port, username }: SshAccess,
  suffix = '',
): string {
  return `ssh ${port === 22 ? '' : `-p ${port} `}${id}.${username}${suffix}@${hostname}`;
}

function sshBlock(cluster: ClusterUse, { hostname, port, username }: SshAccess): string {
  const lines = [`HostName ${hostname}`, `Port ${port}`, `User ${cluster.cluster_id}.${username}`];
  return [`Host ${aliasOf(cluster)}`, ...lines.map((line) => `    ${line}`)].join('\n');
}

export function Kubeconfig({ cluster }: { cluster: ClusterUse }) {
  const [isOpen, setOpen] = useState(false);
  const file = useQuery({ ...readKubeconfig(cluster), enabled: isOpen });
  const { cluster_name: name } = cluster;
  const plain = plainName(cluster);
  const download = async () => {
    const { data } = await file.refetch();
    if (data !== undefined) save(`${plain}.kubeconfig`, 'application/yaml', data);
  };
  return (
    <>
      <p className="buttons">
        <Button
          className="second"
          onClick={() => void download()}
          aria-label={`Download kubeconfig of ${name}`}
        >
          Download kubeconfig
        </Button>
      </p>
      {file.error && !isOpen && <Problem error={file.error} />}
      <p className="soft">Then sign in, from where it was saved:</p>
      <CopyLine
        text={`kubectl --kubeconfig ${plain}.kubeconfig auth whoami`}
        label={`sign in to ${name} with kubectl`}
      />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>kubeconfig, sign-in plugin, andromeda command</summary>
        {isOpen && (
          <Loaded of={file}>{(text) => <CopyLine text={text} label={`kubeconfig of ${name}`} />}</Loaded>
        )}
        <p className="soft">Signing in takes a kubectl plugin, once for each machine:</p>
        <CopyLine text="kubectl krew install oidc-login" label="install the sign-in plugin" />
        <p className="soft">With the andromeda command, into the file that kubectl uses anyway:</p>
        <CopyLine
          text={`andromeda kubeconfig ${plain} --merge ~/.kube/config --use`}
          label={`merge the kubeconfig of ${name}`}
        />
      </details>
    </>
  );
}
