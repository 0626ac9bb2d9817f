/** The Kubernetes versions of a cluster: the one it is to run, and the one that its nodes run. */
import type { KubernetesReport } from '../domain/manifest.ts';
import type { Tx } from './index.ts';
import { prepared } from './prepared.ts';
import { toTime } from './time.ts';

/** Keeps the versions that a cluster reports, where they are news. What it does not say stands as it did. */
export async function updateKubernetesVersions(
  tx: Tx,
  clusterId: string,
  { version, kubeletVersion }: Pick<KubernetesReport, 'version' | 'kubeletVersion'>,
): Promise<void> {
  const [cluster] = await versionsOf(tx.db, clusterId);
  if (!cluster) return;
  const isNewTarget = version !== undefined && version !== cluster.kubernetes_version;
  const isNewKubelet = kubeletVersion !== undefined && kubeletVersion !== cluster.kubelet_version;
  if (!isNewTarget && !isNewKubelet) return;
  await tx.db
    .updateTable('clusters')
    .set((eb) => ({
      ...(isNewTarget
        ? { kubernetes_version: version, version_generation: eb('version_generation', '+', 1) }
        : {}),
      ...(isNewKubelet ? { kubelet_version: kubeletVersion } : {}),
      version: eb('version', '+', 1),
      updated_at: toTime(tx.now),
    }))
    .where('id', '=', clusterId)
    .execute();
}

const versionsOf = prepared((db, clusterId: string) =>
  db.selectFrom('clusters').select(['kubernetes_version', 'kubelet_version']).where('id', '=', clusterId),
);
