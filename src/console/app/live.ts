/**
 * The live stream carries topics that changed. One tab of the browser holds it (by a lock) and broadcasts it; when that tab
 * closes, the next one takes over. After every interruption the page reads everything on the screen again.
 */
import type { Query, QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { goToSignIn, ownHeaders } from './api.ts';

type LiveState = 'live' | 'connecting';

type Message =
  | { topics: string[] }
  | { reported: string[] }
  | { state: LiveState; heardAt?: number | undefined }
  | { signedOut: true };

const name = 'andromeda-live';
const firstWaitMs = 1_000;
const mostWaitMs = 30_000;
/** The timeout of the stream: the server sends a heartbeat every ten seconds. */
const silenceMs = 15_000;

interface Live {
  state: LiveState;
  /** This page receives every change since then; undefined while the stream is interrupted. All times in ms since 1970. */
  since?: number;
  lost?: { at: number; heardAt: number };
}

export const live = createSource<Live>({ state: 'connecting' });

let listens = false;

export function listen(client: QueryClient): void {
  if (listens) return;
  listens = true;
  const channel = new BroadcastChannel(name);
  const take = (message: Message) => {
    if ('topics' in message) void refresh(client, message.topics);
    else if ('reported' in message) noteReports(message.reported);
    else if ('signedOut' in message) goToSignIn();
    else {
      // Changes during the interruption were not received.
      const { state } = live.get();
      if (message.state === state) return;
      if (message.state === 'live') void refresh(client, ['everything']);
      const at = Date.now();
      const { heardAt = at } = message;
      live.set(
        message.state === 'live'
          ? { state: 'live', since: at }
          : { state: 'connecting', lost: { at, heardAt } },
      );
    }
  };
  channel.onmessage = ({ data }: MessageEvent<Message | { ask: true }>) => {
    if ('ask' in data) {
      if (holdsStream) channel.postMessage({ state: live.get().state });
    } else take(data);
  };
  const publish = (message: Message) => {
    take(message);
    channel.postMessage(message);
  };
  channel.postMessage({ ask: true });
  void navigator.locks.request(name, () => hold(publish));
  setInterval(() => void refresh(client, silentClusters()), silenceCheckMs);
}

let holdsStream = false;
/** When the stream last delivered data, in ms since 1970. */
let heardAt: number | undefined;

async function hold(publish: (message: Message) => void): Promise<never> {
  holdsStream = true;
  let waitMs = firstWaitMs;
  for (;;) {
    if (!document.location.pathname.startsWith('/signed-out')) {
      const openedAt = Date.now();
      await readStream(publish).catch(() => {});
      if (Date.now() - openedAt > mostWaitMs) waitMs = firstWaitMs;
    }
    publish({ state: 'connecting', heardAt });
    // Back-off with jitter, so that browsers do not all reconnect at once; one whose own network returns does not wait.
    const waiting = new AbortController();
    await new Promise((done) => {
      setTimeout(done, waitMs * (0.5 + Math.random()));
      window.addEventListener('online', done, { signal: waiting.signal });
    });
    waiting.abort();
    waitMs = Math.min(waitMs * 2, mostWaitMs);
  }
}

async function readStream(publish: (message: Message) => void): Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  window.addEventListener('offline', () => stopping.abort(), { signal });
  let silent = setTimeout(() => stopping.abort(), silenceMs);
  const response = await fetch('/events', {
    headers: { ...ownHeaders(), Accept: 'text/event-stream' },
    signal,
    cache: 'no-store',
  });
  if (response.status === 401) return publish({ signedOut: true });
  if (!response.ok || !response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heardAt = Date.now();
    clearTimeout(silent);
    silent = setTimeout(() => stopping.abort(), silenceMs);
    const events = (text + value).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) takeEvent(event, publish);
  }
}

function takeEvent(event: string, publish: (message: Message) => void): void {
  const [, kind] = /^event: (.*)$/m.exec(event) ?? [];
  const [, data = '[]'] = /^data: (.*)$/m.exec(event) ?? [];
  if (kind === 'open') publish({ state: 'live' });
  else if (kind === 'signed-out') publish({ signedOut: true });
  else if (kind === 'reported') publish({ reported: JSON.parse(data) });
  else if (kind === 'changed') publish({ topics: JSON.parse(data) });
}

export async function refresh(client: QueryClient, topics: readonly string[]): Promise<void> {
  if (topics.length === 0) return;
  const predicate = ({ meta }: Query) => isAbout(meta, topics);
  // Invalidation does not cancel a first read, whose answer may predate the change: it is invalidated once more.
  const fetching = client.getQueryCache().findAll({ predicate, fetchStatus: 'fetching' });
  const first = fetching.filter(({ state }) => state.data === undefined);
  await client.invalidateQueries({ predicate });
  if (first.length > 0) await client.invalidateQueries({ predicate: (one) => first.includes(one) });
}

/** Whether a query depends on one of these topics; `cluster/*` stands for any cluster. */
function isAbout(meta: Record<string, unknown> | undefined, topics: readonly string[]): boolean {
  const isChanged = (own: string) =>
    own.endsWith('/*') ? topics.some((one) => one.startsWith(own.slice(0, -1))) : topics.includes(own);
  return topics.includes('everything') || ((meta?.['topics'] ?? []) as string[]).some(isChanged);
}

/** After this long without a report the APIs call a cluster's state stale, which the stream does not announce. */
const freshMs = 120_000;
const silenceCheckMs = 10_000;

/** When this page last received a report of each cluster, in ms since 1970. */
export const reports = createSource<ReadonlyMap<string, number>>(new Map());
let silent = new Set<string>();

function noteReports(clusterIds: string[]): void {
  reports.set(new Map([...reports.get(), ...clusterIds.map((id) => [id, Date.now()] as const)]));
}

/** Topics of the clusters that stopped or resumed reporting since the last call, and the topic of operators. */
function silentClusters(): string[] {
  const before = silent;
  const known = [...reports.get()];
  silent = new Set(known.filter(([, at]) => Date.now() - at > freshMs).map(([id]) => id));
  const changed = [...reports.get().keys()].filter((id) => before.has(id) !== silent.has(id));
  return changed.length === 0 ? [] : ['installation', ...changed.map((id) => `cluster/${id}`)];
}

export function createSource<Value>(value: Value) {
  const watchers = new Set<() => void>();
  const watch = (watcher: () => void) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  };
  return {
    get: () => value,
    set(next: Value) {
      value = next;
      for (const watcher of watchers) watcher();
    },
    use: <Part>(select: (value: Value) => Part) => useSyncExternalStore(watch, () => select(value)),
  };
}

/** The announcement of the last save, shown for some seconds; `count` distinguishes two with the same text. */
export const announcement = createSource<{ text: string; count: number } | undefined>(undefined);
let announced = 0;

export function announce(text: string): void {
  announced += 1;
  announcement.set({ text, count: announced });
}
