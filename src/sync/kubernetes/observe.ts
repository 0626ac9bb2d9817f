/**
 * Observes a cluster through its API server: a few requests, whatever its size, and where there are GPUs a paged list of all
 * pods, as an API server has no sums. GPUs in use are unknown where our credentials may not list pods.
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

/** A report names at most this many pods that hold GPUs. */
const mostPods = 2_000;
/** Parsing a page takes some 10 ms and blocks the event loop. */
const pageSize = 100;
const mostPages = 500;
const limitMs = 30_000;
/** Largest share of time spent on listing pods: a large cluster is counted less often. */
const partOfTime = 0.05;
/** An older count is dropped; the longest pause is shorter, so that the next one comes first. */
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
    // Ended pods may outnumber those that run.
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

/** Timeout of `/readyz`, shorter than that of other requests, to detect early that an API server hangs. */
const readyLimitMs = 8_000;

/** Throws the network's error when the API server does not answer, and when it rejects our credentials. */
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
          // A server without Rook does not know this API.
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

/** `/readyz` stays `ok` while the server's own store (etcd) does not answer, so that failed requests count as well. */
function conditionOf(readiness: ConditionReport, refusals: readonly KubernetesError[]): ConditionReport {
  const meanings = refusals.map((refusal) => meaningOf(refusal));
  // Without access there is nothing to report: the last report ages.
  if (meanings.some(({ kind }) => kind === 'credentials'))
    throw new Error('it does not accept our credentials');
  const trouble = meanings.find(({ kind }) => kind === 'trouble');
  if (readiness.status === 'True' && trouble?.kind === 'trouble') {
    const message = `The API server says that it is ready, and does not serve requests: ${trouble.message}`;
    return { status: 'False', reason: 'RequestsFail', message };
  }
  return readiness;
}
