/** Observes a cluster through its API server: the same few requests, whatever its size. */
import {
  apiReadiness,
  gpuOf,
  machineOf,
  type Node,
  oldestKubelet,
  type StorageFacts,
  storageOf,
} from '../../../domain/kubernetes-report.ts';
import { KubernetesError, meaningOf } from '../../../domain/kubernetes-status.ts';
import type { ConditionReport, MachineReport, StorageReport } from '../../../domain/manifest.ts';
import type { KubernetesClient } from './client.ts';
import type { Faults } from './faults.ts';
import type { PodCounter } from './pods.ts';

export interface ClusterView {
  ready: ConditionReport;
  version?: string;
  kubeletVersion?: string;
  machines?: MachineReport[];
  storage: StorageReport;
}

/** Throws what the network says where the API server does not answer. */
export async function observeCluster(
  client: KubernetesClient,
  { subVolumeGroup, faults, pods }: { subVolumeGroup: string | undefined; faults: Faults; pods: PodCounter },
  signal: AbortSignal,
): Promise<ClusterView> {
  const refusals: KubernetesError[] = [];
  async function ask<T>(path: string): Promise<T | undefined> {
    try {
      return await client.request<T>({ path }, signal);
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      refusals.push(error);
      faults.refused(error, { what: path });
      return undefined;
    }
  }
  const list = async <T>(path: string) => {
    const answer = await ask<{ items: T[] | null }>(path);
    return answer && (answer.items ?? []);
  };
  type RookObjects = StorageFacts['cephClusters'];
  const rook = async (kind: string): Promise<RookObjects> => {
    try {
      return (
        await client.request<{ items: NonNullable<RookObjects> }>(
          { path: `/apis/ceph.rook.io/v1/${kind}` },
          signal,
        )
      ).items;
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      // Without Rook the server knows no such API.
      if (meaningOf(error).kind === 'missing') return [];
      faults.refused(error, { what: kind });
      return undefined;
    }
  };
  const [readiness, version, nodes, storageClasses, cephClusters, cephFilesystems, subVolumeGroups] =
    await Promise.all([
      askReadiness(client, signal),
      ask<{ gitVersion?: string }>('/version'),
      list<Node>('/api/v1/nodes'),
      list<{ provisioner: string }>('/apis/storage.k8s.io/v1/storageclasses'),
      rook('cephclusters'),
      rook('cephfilesystems'),
      rook('cephfilesystemsubvolumegroups'),
    ]);
  // Only then is there something to count.
  const use = nodes?.some((node) => gpuOf(node)) ? await pods.count(client, signal) : undefined;
  const kubeletVersion = nodes && oldestKubelet(nodes);
  const facts = { cephClusters, cephFilesystems, subVolumeGroups, storageClasses, subVolumeGroup };
  return {
    ready: conditionOf(readiness, refusals),
    ...(version?.gitVersion === undefined ? {} : { version: version.gitVersion }),
    ...(kubeletVersion === undefined ? {} : { kubeletVersion }),
    ...(nodes === undefined ? {} : { machines: nodes.map((node) => machineOf(node, use)) }),
    storage: storageOf(facts),
  };
}

async function askReadiness(client: KubernetesClient, signal: AbortSignal): Promise<ConditionReport> {
  try {
    const text = await client.request<unknown>({ path: '/readyz' }, signal);
    return apiReadiness({ status: 200, text: String(text) });
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    return apiReadiness({ status: error.status, text: error.body.message ?? '' });
  }
}

/** `/readyz` goes on saying `ok` while the server's own store does not answer, so that what we asked counts as well. */
function conditionOf(readiness: ConditionReport, refusals: readonly KubernetesError[]): ConditionReport {
  const meanings = refusals.map((refusal) => meaningOf(refusal));
  if (meanings.some(({ kind }) => kind === 'credentials')) {
    const message = 'The API server does not accept our credentials.';
    return { status: 'Unknown', reason: 'CredentialsRefused', message };
  }
  const trouble = meanings.find(({ kind }) => kind === 'trouble');
  if (readiness.status === 'True' && trouble?.kind === 'trouble') {
    const message = `The API server says that it is ready, and does not serve requests: ${trouble.message}`;
    return { status: 'False', reason: 'RequestsFail', message };
  }
  return readiness;
}
