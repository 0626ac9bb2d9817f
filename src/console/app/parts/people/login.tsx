/** A person's way into one cluster over SSH: how far it has come, and the lines to log in with. */
import { useQuery } from '@tanstack/react-query';
import { type ClusterUse, plainName, readSshAccess, type SshAccess, type Use } from '../../reads.ts';
import { CopyLine } from '../copy.tsx';
import { type Step, Strip, stepsOf } from '../strip.tsx';

export type Key = { fingerprint: string; created_at: string };

/** From the key that was registered to the account that the cluster confirmed. */
function loginSteps({ state }: Use, access: SshAccess, key: Key): Step[] {
  const isAccepted = access.reason !== 'access_not_projected' && access.manifest_generation > 0;
  const isApplied = isAccepted && access.key_fingerprints.includes(key.fingerprint);
  return stepsOf(state === 'failed' ? 'failed' : 'busy', [
    { name: 'Key registered', isDone: true, at: key.created_at },
    { name: 'Sent to the cluster', isDone: isAccepted },
    { name: 'Key applied', isDone: isApplied },
    { name: 'Login ready', isDone: isApplied && access.ready },
  ]);
}

/** How far the newest key has come; nothing where there is none, or it goes nowhere. */
export function LoginStrip({ cluster, newest }: { cluster: ClusterUse; newest: Key | undefined }) {
  const { ssh, cluster_id: id } = cluster;
  const isOnItsWay = newest !== undefined && ssh.granted && ssh.state !== 'missing';
  const access = useQuery({ ...readSshAccess(cluster), enabled: isOnItsWay });
  if (!isOnItsWay || !access.data) return null;
  return <Strip of={`login/${id}/${newest.fingerprint}`} steps={loginSteps(ssh, access.data, newest)} />;
}

/** The lines to copy, once there is an address. */
export function LoginLines({ cluster, access }: { cluster: ClusterUse; access: SshAccess }) {
  if (access.hostname === '' || access.username === '') return null;
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
        <CopyLine text={knownHost(access)} label={`host key of the gateway to ${name}`} />
        <p className="soft">
          Or compare the fingerprint when ssh asks: <code>{access.host_key_fingerprint}</code>
        </p>
      </details>
    </>
  );
}

/** A name that ssh takes as an alias. */
export function aliasOf(cluster: ClusterUse): string {
  return `andromeda-${plainName(cluster)}`;
}

/** A line for a terminal; with `+4711` behind the login name, into that job. */
export function sshLine(
  { cluster_id: id }: ClusterUse,
  { hostname, port, username }: SshAccess,
  suffix = '',
): string {
  return `ssh ${port === 22 ? '' : `-p ${port} `}${id}.${username}${suffix}@${hostname}`;
}

/** A block for ~/.ssh/config. */
function sshBlock(cluster: ClusterUse, { hostname, port, username }: SshAccess): string {
  const lines = [`HostName ${hostname}`, `Port ${port}`, `User ${cluster.cluster_id}.${username}`];
  return [`Host ${aliasOf(cluster)}`, ...lines.map((line) => `    ${line}`)].join('\n');
}

/** A line for ~/.ssh/known_hosts. */
function knownHost({ hostname, port, host_key: key }: SshAccess): string {
  return `${port === 22 ? hostname : `[${hostname}]:${port}`} ${key}`;
}
