/**
 * Watches of bindings and namespaces. An event only requests a pass, which lists the present bindings; requests are rate
 * limited. A pass without an event lists nothing, so that a missed event costs up to five minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Binding,
  type FoundBinding,
  hasRole,
  isAsWanted,
  keyOf,
} from '../../domain/kubernetes/bindings.ts';
import { KubernetesError, meaningOf } from '../../domain/kubernetes/status.ts';
import { createRateLimiter, retryDelay } from '../../lib/limits.ts';
import { type BindingItem, foundOf, labelSelector, pathOfKind } from './bindings.ts';
import type { KubernetesClient } from './client.ts';

/** The wanted state, as the last pass knew it. */
export interface WantedState {
  bindings: ReadonlyMap<string, Binding>;
  namespaces: ReadonlySet<string>;
}

export interface WatchOptions {
  clusterId: string;
  client: KubernetesClient;
  expected(): WantedState;
  wake(): void;
}

interface WatchEvent {
  type: string;
  object: BindingItem & { status?: { phase?: string }; code?: number };
}

/** The server ends a watch after this many seconds; a dead connection is noticed a little later. */
const watchSeconds = 60;
/** Longest pause between attempts while the server does not answer; a successful one ends the back-off of passes. */
const longestRetryMs = 5_000;
/** Pause after a refusal: without the right to watch, only the interval starts passes. */
const forbiddenRetryMs = 300_000;
/** A watch that ends sooner counts as a failure: an immediate retry would flood the server. */
const shortestMs = 1_000;
/** Rate limit, as another client may change our bindings all the time. */
const wakes = { burst: 10, everyMs: 3_000 };

/** `seen`: number of events and possible misses, also by `wake`; undefined while not everything is watched. */
export function startWatching(options: WatchOptions, signal: AbortSignal) {
  const { clusterId, client, expected } = options;
  const seen = { live: 0, news: 0 };
  const wakeSoon = rateLimited(options.wake);
  const wake = () => {
    seen.news += 1;
    wakeSoon();
  };
  const selector = { labelSelector: labelSelector(clusterId) };
  const isBindingNews = ({ type, object }: WatchEvent) => isNews(type, foundOf(object), expected().bindings);
  const isNamespaceNews = ({ type, object }: WatchEvent) =>
    type !== 'DELETED' &&
    object.status?.phase !== 'Terminating' &&
    expected().namespaces.has(object.metadata.name);
  const watches = [
    { path: pathOfKind('clusterrolebindings'), query: selector, isNews: isBindingNews },
    { path: pathOfKind('rolebindings'), query: selector, isNews: isBindingNews },
    { path: '/api/v1/namespaces', query: {}, isNews: isNamespaceNews },
  ];
  for (const watch of watches) void follow({ ...watch, wake, client, seen }, signal);
  return { wake, seen: (): number | undefined => (seen.live === watches.length ? seen.news : undefined) };
}

/** Whether an event needs a pass; one that shows a pass's own write does not. */
function isNews(type: string, found: FoundBinding, wanted: ReadonlyMap<string, Binding>): boolean {
  const binding = wanted.get(keyOf(found));
  if (type === 'DELETED') return binding !== undefined;
  return !binding || !hasRole(found, binding.role) || !isAsWanted(found, binding);
}

interface Watch {
  path: string;
  query: Readonly<Record<string, string>>;
  isNews(event: WatchEvent): boolean;
  wake(): void;
  client: KubernetesClient;
  seen: { live: number; news: number };
}

async function follow(watch: Watch, signal: AbortSignal): Promise<void> {
  let resourceVersion: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      if (resourceVersion === undefined) {
        resourceVersion = await versionNow(watch, signal);
        watch.seen.live += 1;
        // The pass finds changes from before this version.
        if (failures > 0) watch.wake();
      }
      const since = performance.now();
      resourceVersion = await read(watch, resourceVersion, signal);
      if (performance.now() - since < shortestMs) throw new Error('the watch ended at once');
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      if (resourceVersion !== undefined) watch.seen.live -= 1;
      watch.seen.news += 1;
      resourceVersion = undefined;
      await sleep(waitAfter(error, failures), undefined, { signal }).catch(() => {});
    }
  }
}

function waitAfter(error: unknown, failures: number): number {
  const isForbidden = error instanceof KubernetesError && meaningOf(error).kind === 'right';
  return isForbidden ? forbiddenRetryMs : retryDelay(failures, Math.random(), longestRetryMs);
}

async function versionNow({ client, path, query }: Watch, signal: AbortSignal): Promise<string> {
  const request = { path, query: { ...query, limit: '1' } };
  const { metadata } = await client.request<{ metadata: { resourceVersion: string } }>(request, signal);
  return metadata.resourceVersion;
}

/** Reads events until the server ends the watch; returns the resource version to continue from. */
async function read(
  { client, path, query, isNews, wake }: Watch,
  from: string,
  signal: AbortSignal,
): Promise<string> {
  let last = from;
  const parameters = { ...query, watch: '1', allowWatchBookmarks: 'true', resourceVersion: from };
  await client.stream({ path, query: parameters }, watchSeconds, signal, (line) => {
    const event = JSON.parse(line) as WatchEvent;
    // Includes 410: the resource version is too old.
    if (event.type === 'ERROR') throw new Error(`the watch ended with an error: ${event.object.code}`);
    last = event.object.metadata.resourceVersion;
    if (event.type !== 'BOOKMARK' && isNews(event)) wake();
  });
  return last;
}

/** Returns a function that calls `body` within the rate limit: at once, or once as soon as the limit allows. */
function rateLimited(body: () => void): () => void {
  const limiter = createRateLimiter(wakes);
  let timer: NodeJS.Timeout | undefined;
  return () => {
    if (timer) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        body();
      },
      limiter.take('', wakes.everyMs),
    ).unref();
  };
}
