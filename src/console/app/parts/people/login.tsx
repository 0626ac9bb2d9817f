/** A person's way into one cluster: how far it has come, and the lines to log in with. */
import type { ClusterItem, SshAccess } from '../../reads.ts';
import { aliasOf, knownHost, obstacleOf, sshBlock, sshLine } from '../../ssh.ts';
import { CopyLine } from '../copy.tsx';
import { type Step, Strip, stepsOf } from '../strip.tsx';

export type Key = { fingerprint: string; created_at: string };

/** From the key that was registered to the account that the cluster confirmed. */
function loginSteps(access: SshAccess, key: Key | undefined): Step[] {
  const isAsked = key !== undefined;
  const isAccepted = isAsked && access.reason !== 'access_not_projected' && access.manifest_generation > 0;
  const isApplied = isAccepted && access.key_fingerprints.includes(key.fingerprint);
  const isFailed = access.reason === 'observation_stale' || access.reason === 'gateway_unavailable';
  return stepsOf(!isAsked ? 'waiting' : isFailed ? 'failed' : 'busy', [
    { name: 'Key registered', isDone: isAsked, at: key?.created_at },
    { name: 'Sent to the cluster', isDone: isAccepted },
    { name: 'Key applied', isDone: isApplied },
    { name: 'Login ready', isDone: isApplied && access.ready },
  ]);
}

interface LoginStripOptions {
  cluster: ClusterItem;
  access: SshAccess;
  newest: Key | undefined;
}

export function LoginStrip({ cluster, access, newest }: LoginStripOptions) {
  const obstacle = obstacleOf(access, cluster.spec.name);
  return (
    <Strip
      of={`login/${cluster.id}/${newest?.fingerprint}`}
      steps={loginSteps(access, newest)}
      missing={obstacle && `${obstacle.sentence} ${obstacle.advice}`}
    />
  );
}

/** The lines to copy, once there is an address. */
export function LoginLines({ cluster, access }: { cluster: ClusterItem; access: SshAccess }) {
  if (access.hostname === '' || access.username === '') return null;
  const { name } = cluster.spec;
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
