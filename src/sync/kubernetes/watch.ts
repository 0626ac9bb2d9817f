/**
 * Watches of bindings and namespaces: an event only asks for a pass, which lists what is there. Where nothing was new, a pass
 * lists nothing, so that a missed event costs five minutes; frequent ones are rate limited.
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

/** What there should be, as the last pass knew it. */
export interface Expected {
  bindings: ReadonlyMap<string, Binding>;
  namespaces: ReadonlySet<string>;
}

export interface WatchOptions {
  clusterId: string;
  client: KubernetesClient;
  expected(): Expected;
  wake(): void;
}

interface WatchEvent {
  type: string;
  object: BindingItem & { status?: { phase?: string }; code?: number };
}

/** The server ends a watch after this time, in seconds; a dead connection is noticed a little later. */
const watchSeconds = 60;
/** The longest pause between attempts while the server does not answer; one that succeeds ends the back-off of passes. */
const longestRetryMs = 5_000;
/** Without the right to watch there is only the interval. */
const forbiddenRetryMs = 300_000;
/** One that ends sooner is a failure, as asking for the next at once would be a storm. */
const shortestMs = 1_000;
/** Another client may change our bindings all the time. */
const wakes = { burst: 10, everyMs: 3_000 };

/** Returns how often something was new or may have been missed, undefined while not everything is watched; `wake` counts as well. */
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

/** An event that shows what a pass itself wrote asks for nothing. */
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
        // A pass finds what happened before this version.
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

/** Reads events until the server ends them; returns the version to go on from. */
async function read(
  { client, path, query, isNews, wake }: Watch,
  from: string,
  signal: AbortSignal,
): Promise<string> {
  let last = from;
  const parameters = { ...query, watch: '1', allowWatchBookmarks: 'true', resourceVersion: from };
  await client.stream({ path, query: parameters }, watchSeconds, signal, (line) => {
    const event = JSON.parse(line) as WatchEvent;
    // Also where the version is too old (410).
    if (event.type === 'ERROR') throw new Error(`the watch ended with an error: ${event.object.code}`);
    last = event.object.metadata.resourceVersion;
    if (event.type !== 'BOOKMARK' && isNews(event)) wake();
  });
  return last;
}

/** Calls at once while the rate limit allows it; otherwise once, as soon as it does. */
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
