/**
 * Observes a cluster through its API server: the same few requests, whatever its size, and where there are GPUs a list of all pods,
 * page by page, since an API server sums nothing up. What pods hold is not known where our credentials may not list them.
 */
import type { ConditionReport } from '../../domain/access/manifest.ts';
import {
  addPods,
  apiReadiness,
  gpuOf,
  machineOf,
  type Node,
  oldestKubelet,
  type Pod,
  type PodUse,
  type RookObject,
  storageOf,
} from '../../domain/kubernetes/report.ts';
import { KubernetesError, meaningOf } from '../../domain/kubernetes/status.ts';
import { atMost } from '../loop/pass.ts';
import type { KubernetesClient } from './client.ts';
import type { Faults } from './faults.ts';

/** A report names no more of those that hold GPUs. */
const mostPods = 2_000;
/** A page is read in some 10 ms, and nothing else runs meanwhile. */
const pageSize = 100;
const mostPages = 500;
const limitMs = 30_000;
/** Of all time, so much is spent on lists at most: a large cluster is counted less often. */
const partOfTime = 0.05;
/** An older count is none, and the next comes before that. */
const goodForMs = 300_000;
const longestPauseMs = 240_000;

export class PodCounter {
  #known: { use: PodUse; at: number } | undefined;
  #nextAt = -Infinity;

  async count(client: KubernetesClient, signal: AbortSignal): Promise<PodUse | undefined> {
    const started = performance.now();
    if (started >= this.#nextAt) {
      const use = await this.#list(client, signal);
      const ended = performance.now();
      this.#known = use && { use, at: started };
      this.#nextAt = ended + Math.min(longestPauseMs, (ended - started) / partOfTime);
    }
    const known = this.#known;
    return known && performance.now() - known.at <= goodForMs ? known.use : undefined;
  }

  async #list(client: KubernetesClient, signal: AbortSignal): Promise<PodUse | undefined> {
    const use: PodUse = { held: new Map(), pods: [] };
    const both = atMost(signal, limitMs);
    // Of those that have ended there can be more than of those that run.
    const query = { limit: `${pageSize}`, fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed' };
    let pages = 0;
    try {
      for await (const page of client.pages<Pod>('/api/v1/pods', both, query)) {
        addPods(use, page);
        pages += 1;
        if (pages === mostPages) return undefined;
      }
      return use;
    } catch {
      signal.throwIfAborted();
      // The right to list pods is optional, and other requests report whether the server answers.
      return undefined;
    }
  }
}

/** An API server that hangs is known this soon; what else is asked may take longer. */
const readyLimitMs = 8_000;

/** Throws what the network says where the API server does not answer, and where it does not accept our credentials. */
export async function observeCluster(
  client: KubernetesClient,
  { subVolumeGroup, faults, pods }: { subVolumeGroup: string | undefined; faults: Faults; pods: PodCounter },
  signal: AbortSignal,
) {
  const refusals: KubernetesError[] = [];
  async function ask<T>(path: string, request: () => Promise<T>, says = refusals): Promise<T | undefined> {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      faults.refused(error, { what: path });
      says.push(error);
      return undefined;
    }
  }
  const list = <T>(path: string) => ask(path, () => client.list<T>(path, signal));
  const rook = (kind: string) =>
    ask(
      kind,
      () =>
        client.list<RookObject>(`/apis/ceph.rook.io/v1/${kind}`, signal).catch((error) => {
          // Without Rook the server knows no such API.
          if (error instanceof KubernetesError && meaningOf(error).kind === 'missing') return [];
          throw error;
        }),
      [],
    );
  const [readiness, version, nodes, storageClasses, cephClusters, cephFilesystems, subVolumeGroups] =
    await Promise.all([
      askReadiness(client, signal),
      ask('/version', () => client.request<{ gitVersion?: string }>({ path: '/version' }, signal)),
      list<Node>('/api/v1/nodes'),
      list<{ provisioner: string }>('/apis/storage.k8s.io/v1/storageclasses'),
      rook('cephclusters'),
      rook('cephfilesystems'),
      rook('cephfilesystemsubvolumegroups'),
    ]);
  const use = nodes?.some((node) => gpuOf(node)) ? await pods.count(client, signal) : undefined;
  return {
    ready: conditionOf(readiness, refusals),
    version: version?.gitVersion,
    kubeletVersion: nodes && oldestKubelet(nodes),
    machines: nodes?.map((node) => machineOf(node, use)),
    pods: use?.pods.toSorted((a, b) => b.gpus - a.gpus).slice(0, mostPods),
    storage: storageOf({ cephClusters, cephFilesystems, subVolumeGroups, storageClasses, subVolumeGroup }),
  };
}

async function askReadiness(client: KubernetesClient, signal: AbortSignal): Promise<ConditionReport> {
  try {
    const request = { path: '/readyz', limitMs: readyLimitMs, isText: true };
    const text = await client.request<unknown>(request, signal);
    return apiReadiness({ status: 200, text: String(text) });
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    return apiReadiness({ status: error.status, text: error.body.message ?? '' });
  }
}

/** `/readyz` goes on saying `ok` while the server's own store does not answer, so that what we asked counts as well. */
function conditionOf(readiness: ConditionReport, refusals: readonly KubernetesError[]): ConditionReport {
  const meanings = refusals.map((refusal) => meaningOf(refusal));
  // It says nothing of the cluster then: what is known of that gets old.
  if (meanings.some(({ kind }) => kind === 'credentials'))
    throw new Error('it does not accept our credentials');
  const trouble = meanings.find(({ kind }) => kind === 'trouble');
  if (readiness.status === 'True' && trouble?.kind === 'trouble') {
    const message = `The API server says that it is ready, and does not serve requests: ${trouble.message}`;
    return { status: 'False', reason: 'RequestsFail', message };
  }
  return readiness;
}
