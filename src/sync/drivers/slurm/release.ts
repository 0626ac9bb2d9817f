/** Takes away what is ours on a host. Homes stay. */
import type { SlurmCluster } from './cluster.ts';
import { configurationRows, stepRows } from './desired.ts';
import type { Host } from './hosts.ts';
import type { Row } from './script.ts';
import { HostError } from './shell.ts';

/** Returns messages about what is left there; none where nothing is. */
export async function releaseHost(
  cluster: SlurmCluster,
  host: Host,
  signal: AbortSignal,
  extra: readonly Row[] = [],
): Promise<string[]> {
  const rows: Row[] = [
    ['version', 0, 0, 0],
    ['configuration', 'apply'],
    ...configurationRows(cluster.settings, {}),
    ...stepRows(cluster.settings, ['reload']),
    ...extra,
  ];
  const result = await cluster.run(host, 'release', rows, signal);
  if (result instanceof HostError) return [result.message];
  if (result.problems.length === 0) cluster.record.remove(host.address);
  return result.problems.map(({ message }) => `${host.address}: ${message}`);
}
