/**
 * Watches of bindings and namespaces, in addition to the list: an event only asks for a pass, and the list stays the source
 * of truth. A missed event costs one interval, and frequent ones are rate limited.
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
import { retryDelay } from '../../lib/limits.ts';
import { type BindingItem, foundOf, labelSelector, pathOfKind } from './bindings.ts';
import type { KubernetesClient } from './client.ts';

/** What there should be, as the last pass knew it. */
export interface Expected {
  /** By `keyOf`. */
  bindings: ReadonlyMap<string, Binding>;
  /** Namespaces that are not there yet. */
  namespaces: ReadonlySet<string>;
}

export interface WatchOptions {
  clusterId: string;
  connect(): Promise<KubernetesClient>;
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
/** Rate limit of wake-ups: a burst of `size`, then one per `refillMs`. Another client may change our bindings all the time. */
const burst = { size: 10, refillMs: 3_000 };

/** Watches until `signal` is aborted. Throws nothing. */
export function startWatching(options: WatchOptions, signal: AbortSignal): void {
  const { clusterId, expected } = options;
  const wake = rateLimited(options.wake);
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
  for (const watch of watches) void follow({ ...watch, wake, connect: options.connect }, signal);
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
  connect(): Promise<KubernetesClient>;
}

async function follow(watch: Watch, signal: AbortSignal): Promise<void> {
  let resourceVersion: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const client = await watch.connect();
      if (resourceVersion === undefined) {
        resourceVersion = await versionNow(client, watch, signal);
        // A pass finds what happened before this version.
        if (failures > 0) watch.wake();
      }
      const last = await read(client, watch, resourceVersion, signal);
      failures = 0;
      // Expired: a pass finds what was missed.
      if (last === undefined) watch.wake();
      resourceVersion = last;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      resourceVersion = undefined;
      await sleep(waitAfter(error, failures), undefined, { signal }).catch(() => {});
    }
  }
}

function waitAfter(error: unknown, failures: number): number {
  const isForbidden = error instanceof KubernetesError && meaningOf(error).kind === 'right';
  return isForbidden ? forbiddenRetryMs : retryDelay(failures, Math.random(), longestRetryMs);
}

/** The version of the list as it is now. */
async function versionNow(
  client: KubernetesClient,
  { path, query }: Watch,
  signal: AbortSignal,
): Promise<string> {
  const request = { path, query: { ...query, limit: '1' } };
  const { metadata } = await client.request<{ metadata: { resourceVersion: string } }>(request, signal);
  return metadata.resourceVersion;
}

/** Reads events until the server ends them; returns the version to go on from, undefined when it is too old. */
async function read(
  client: KubernetesClient,
  { path, query, isNews, wake }: Watch,
  from: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  let last: string | undefined = from;
  const parameters = { ...query, watch: '1', allowWatchBookmarks: 'true', resourceVersion: from };
  await client.stream({ path, query: parameters }, watchSeconds, signal, (line) => {
    const event = JSON.parse(line) as WatchEvent;
    if (event.type === 'ERROR') {
      if (event.object.code !== 410) throw new Error(`the watch ended with an error: ${event.object.code}`);
      last = undefined;
      return;
    }
    last = event.object.metadata.resourceVersion;
    if (event.type !== 'BOOKMARK' && isNews(event)) wake();
  });
  return last;
}

/** Calls at once while the rate limit allows it; otherwise once, as soon as it does. */
function rateLimited(body: () => void): () => void {
  let left = burst.size;
  let refilledAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const call = () => {
    timer = undefined;
    const now = performance.now();
    const more = Math.floor((now - refilledAt) / burst.refillMs);
    left = Math.min(burst.size, left + more);
    refilledAt += more * burst.refillMs;
    if (left > 0) {
      left -= 1;
      body();
    } else timer = setTimeout(call, burst.refillMs - (now - refilledAt)).unref();
  };
  return () => {
    if (!timer) call();
  };
}
