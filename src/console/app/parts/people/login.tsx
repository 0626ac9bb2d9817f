/** A person's way into one cluster: how far it has come, and the lines to log in with. */
import { useQuery } from '@tanstack/react-query';
import { type ClusterItem, readSshAccess, type SshAccess } from '../../reads.ts';
import { aliasOf, knownHost, obstacleOf, sshBlock, sshLine } from '../../ssh.ts';
import { useWho } from '../../who.tsx';
import { CopyLine } from '../copy.tsx';
import { type Step, Strip } from '../strip.tsx';

/** From the key that was registered to the account that the cluster confirmed. */
function stepsOf(access: SshAccess, key: { fingerprint: string; created_at: string } | undefined): Step[] {
  const isAsked = key !== undefined;
  const isAccepted = isAsked && access.reason !== 'access_not_projected' && access.manifest_generation > 0;
  const isApplied = isAccepted && access.key_fingerprints.includes(key.fingerprint);
  const isFailed = access.reason === 'observation_stale' || access.reason === 'gateway_unavailable';
  const flags = [isAsked, isAccepted, isApplied, isApplied && access.ready];
  const names = ['Key registered', 'Sent to the cluster', 'Key applied', 'Login ready'];
  const first = flags.indexOf(false);
  return names.map((name, index) => {
    const at = index === 0 ? key?.created_at : undefined;
    if (flags[index]) return { name, state: 'done', at };
    if (index !== first || !isAsked) return { name, state: 'waiting' };
    return { name, state: isFailed ? 'failed' : 'busy' };
  });
}

export function useSshAccess(cluster: ClusterItem, fingerprint?: string) {
  return useQuery(readSshAccess(cluster.id, useWho(), fingerprint));
}

export function LoginStrip({
  cluster,
  access,
  newest,
}: {
  cluster: ClusterItem;
  access: SshAccess;
  newest: { fingerprint: string; created_at: string } | undefined;
}) {
  const obstacle = obstacleOf(access, cluster.spec.name);
  const missing = obstacle && `${obstacle.sentence} ${obstacle.advice}`;
  return (
    <Strip
      of={`login/${cluster.id}/${newest?.fingerprint}`}
      steps={stepsOf(access, newest)}
      missing={missing}
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
