/** Restarts that are due: login nodes, controller and accounting on all hosts together, then compute nodes one at a time. */
import type { Manifest } from '../../../domain/manifest.ts';
import type { SlurmCluster } from './cluster.ts';
import { stepRows, versionRow } from './desired.ts';
import type { Host } from './hosts.ts';

export async function restartOwed(
  cluster: SlurmCluster,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<void> {
  const restart = (host: Host, ...steps: [roles: Parameters<typeof stepRows>[1], node?: string]) =>
    cluster.run(host, 'restart', [versionRow(manifest), ...stepRows(cluster.settings, ...steps)], signal);
  const hosts = cluster.hosts().filter((host) => cluster.factsOf(host));
  await Promise.all(
    hosts.map(async (host) => {
      const roles = servicesOwed(cluster, host);
      if (roles.includes('login')) endSessions(cluster, host);
      if (roles.length > 0) await restart(host, roles);
    }),
  );
  for (const host of hosts) {
    for (const node of host.nodes) {
      const isOwed = cluster.factsOf(host)?.owed.includes(`compute ${node}`);
      if (isOwed) await restart(host, ['compute'], node);
    }
  }
}

/** All but compute nodes, in the order in which they restart. */
function servicesOwed(cluster: SlurmCluster, host: Host) {
  const owed = cluster.factsOf(host)?.owed ?? [];
  return (['accounting', 'controller', 'reload', 'login'] as const).filter(
    (role) => owed.includes(role) && (role === 'reload' || host.roles.has(role)),
  );
}

function endSessions(cluster: SlurmCluster, { address }: Host): void {
  for (const node of cluster.loginNodes())
    if (node.address === address) cluster.options.endSessions(`${node.host}:${node.port}`);
}
