/**
 * What pods hold of the GPUs of a cluster's nodes: a list of all pods, page by page, since an API server sums nothing up. Not
 * known where our credentials may not list pods, or where it takes too long: never a number that may be wrong.
 */
import { addPods, type Pod, type PodUse } from '../../../domain/kubernetes-report.ts';
import type { KubernetesClient } from './client.ts';

/** A page is read in some 10 ms, and nothing else runs meanwhile. */
const pageSize = 100;
const mostPages = 500;
const limitMs = 30_000;
/** Of all time, so much is spent on lists at most: a large cluster is counted less often. */
const partOfTime = 0.05;
/** An older count is none, and the next comes before that. */
const goodForMs = 300_000;
const longestPauseMs = 240_000;

interface Page {
  metadata?: { continue?: string };
  items: Pod[] | null;
}

export class PodCounter {
  #known: { use: PodUse; at: number } | undefined;
  #nextAt = -Infinity;

  /** By node. Undefined where it is not known. Throws when aborted. */
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
    const use: PodUse = new Map();
    const limit = AbortSignal.timeout(limitMs);
    const both = AbortSignal.any([signal, limit]);
    // Of those that have ended there can be more than of those that run.
    const query = { limit: `${pageSize}`, fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed' };
    let after: string | undefined;
    try {
      for (let pages = 0; pages < mostPages; pages += 1) {
        const asked = { path: '/api/v1/pods', query: { ...query, ...(after && { continue: after }) } };
        const { items, metadata } = await client.request<Page>(asked, both);
        addPods(use, items ?? []);
        after = metadata?.continue || undefined;
        if (after === undefined) return use;
      }
      return undefined;
    } catch {
      signal.throwIfAborted();
      // The right is one that nobody has to give; whether the server answers, the other requests say.
      return undefined;
    }
  }
}
