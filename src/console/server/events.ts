/**
 * The live stream (server-sent events): topics of what changed, for each person those that they may receive. No event is
 * kept: a page that was disconnected reads everything again.
 *
 * The number of streams is limited, per person and in total. Each carries a heartbeat and ends after a while, so that a
 * reader that is gone, or never reads, holds no memory for long.
 */
import type { ServerResponse } from 'node:http';
import { DomainError } from '../../domain/error.ts';
import type { Logger } from '../../lib/log.ts';
import { type Heard, hears, type Store } from '../../store/engine/index.ts';
import type { OpenSession, Sessions } from './sessions.ts';
import { type Changed, concerns, gather, merge, topicsFor, type View, viewOf } from './topics.ts';

export type Events = ReturnType<typeof createEvents>;

export interface EventsOptions {
  store: Store;
  sessions: Pick<Sessions, 'isOpen'>;
  log: Logger;
  now(): number;
}

interface Stream {
  session: OpenSession;
  response: ServerResponse;
  view: View;
  /** When the view was read, by the monotonic clock. */
  viewedAt: number;
  /** Changes that wait until it is read again. */
  later: Changed | undefined;
  timer: NodeJS.Timeout | undefined;
  close(): void;
}

/** Changes that come within this are sent together. */
const gatherMs = 150;
const betweenViewsMs = 1_000;
const reportedMs = 2_000;
/** Sessions that open and end within this are announced together: a busy gateway has dozens a second. */
const sessionsMs = 2_000;
const heartbeatMs = 10_000;
const longestMs = 15 * 60_000;
const mostOfPerson = 12;
const most = 4_000;
/** What may wait for a reader, in bytes. */
const mostWaiting = 16_384;
/** More changes than this at once are sent as one. */
const mostChanges = 1_000;

export function createEvents(options: EventsOptions) {
  const { store, now } = options;
  const streams = new Set<Stream>();
  const { consoleTopics, consoleSessions } = hears;
  const senders = [
    createSender(options, streams, gatherMs, (add) => store.onChange(consoleTopics, add), sendChanges),
    createSender(
      options,
      streams,
      reportedMs,
      (add) => store.observationAges.onRecorded((clusterId) => add([clusterId])),
      sendReports,
    ),
    createSender(options, streams, sessionsMs, (add) => store.onChange(consoleSessions, add), sendSessions),
  ];
  const heart = setInterval(() => {
    for (const stream of streams) send(stream, ': \n\n');
  }, heartbeatMs).unref();

  return {
    /** Answers with a stream. Throws `service_unavailable` where there are too many. */
    async open(session: OpenSession, response: ServerResponse): Promise<void> {
      const { userId } = session;
      if (streams.size >= most) {
        throw new DomainError('service_unavailable', 'Too many pages are open. Try again in a minute.');
      }
      const view = await viewOf(store.read, userId, now());
      if (response.destroyed) return;
      const own = [...streams].filter((one) => one.session.userId === userId);
      // A page that closed without notice may still count: the oldest is closed.
      if (own.length >= mostOfPerson) own[0]?.close();
      response.writeHead(200, {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-store',
        // A proxy in front passes each line on as it comes.
        'X-Accel-Buffering': 'no',
      });
      send(addStream(streams, { session, response, view }), 'event: open\ndata: {}\n\n');
    },
    stop() {
      for (const stopSending of senders) stopSending();
      clearInterval(heart);
      for (const stream of [...streams]) stream.close();
    },
  };
}

function addStream(streams: Set<Stream>, facts: Pick<Stream, 'session' | 'response' | 'view'>): Stream {
  const { response } = facts;
  const end = setTimeout(() => stream.close(), longestMs).unref();
  const stream: Stream = {
    ...facts,
    viewedAt: performance.now(),
    later: undefined,
    timer: undefined,
    close() {
      clearTimeout(end);
      clearTimeout(stream.timer);
      streams.delete(stream);
      // Frees the buffer of a client that does not read; end() would keep it.
      if (response.writableLength > mostWaiting) response.destroy();
      else response.end();
    },
  };
  streams.add(stream);
  response.once('close', () => stream.close());
  return stream;
}

function send(stream: Stream, text: string): void {
  const { response } = stream;
  if (response.writableEnded) return;
  if (response.writableLength > mostWaiting) stream.close();
  else response.write(text);
}

/** Gathers what is announced within a time, and sends it together. Returns how to stop. */
function createSender<Item>(
  options: EventsOptions,
  streams: ReadonlySet<Stream>,
  ms: number,
  listen: (add: (items: readonly Item[]) => void) => () => void,
  sendAll: (options: EventsOptions, streams: ReadonlySet<Stream>, items: readonly Item[]) => Promise<void>,
): () => void {
  let waiting: Item[] = [];
  let timer: NodeJS.Timeout | undefined;
  const stopListening = listen((items) => {
    if (streams.size === 0) return;
    for (const item of items) waiting.push(item);
    timer ??= setTimeout(() => {
      const gathered = waiting;
      waiting = [];
      timer = undefined;
      sendAll(options, streams, gathered).catch((error: unknown) => reportFailure(options, error));
    }, ms).unref();
  });
  return () => {
    stopListening();
    clearTimeout(timer);
  };
}

function reportFailure({ log }: EventsOptions, error: unknown): void {
  log.error('console.events.failed', { error });
}

/** Sends what commits changed. */
async function sendChanges(
  options: EventsOptions,
  streams: ReadonlySet<Stream>,
  changes: readonly Heard<'consoleTopics'>[],
): Promise<void> {
  const changed = changes.length > mostChanges ? undefined : await gather(options.store.read, changes);
  // In parallel, so that a stream whose token the issuer renews does not delay the others.
  await Promise.all([...streams].map((stream) => sendTopics(options, stream, changed)));
}

async function sendTopics(
  options: EventsOptions,
  stream: Stream,
  changed: Changed | undefined,
): Promise<void> {
  const { session, view } = stream;
  const { userId } = session;
  if (!changed || changed.people.has(userId) || changed.browsersOf.has(userId)) {
    const isOpen = await options.sessions.isOpen(session).catch(() => undefined);
    if (isOpen === false) send(stream, 'event: signed-out\ndata: {}\n\n');
    // When this cannot be determined, the page asks again as it opens the next stream.
    if (!isOpen) return stream.close();
  }
  const why = changed ? concerns(view, changed) : 'own';
  if (changed && why === 'cluster') {
    const waitMs = stream.viewedAt + betweenViewsMs - performance.now();
    if (waitMs > 0) return sendLater(options, stream, changed, waitMs);
  }
  if (why) await renewView(options, stream);
  else await requireView(options, stream);
  const topics = changed ? topicsFor(stream.view, changed) : ['everything'];
  // With a cluster more or less, the person's own data (`me`) has changed.
  if (stream.view.clusters.symmetricDifference(view.clusters).size > 0) topics.push('me');
  if (topics.length > 0) send(stream, `event: changed\ndata: ${JSON.stringify([...new Set(topics)])}\n\n`);
}

/** Clusters change often, and each change may be of a grant: changes within `waitMs` are handled together. */
function sendLater(options: EventsOptions, stream: Stream, changed: Changed, waitMs: number): void {
  stream.later = stream.later ? merge(stream.later, changed) : changed;
  stream.timer ??= setTimeout(() => {
    const { later } = stream;
    stream.later = undefined;
    stream.timer = undefined;
    sendTopics(options, stream, later).catch((error: unknown) => reportFailure(options, error));
  }, waitMs).unref();
}

async function renewView({ store, now }: EventsOptions, stream: Stream): Promise<void> {
  stream.viewedAt = performance.now();
  stream.view = await viewOf(store.read, stream.session.userId, now());
}

/** A grant ends by itself, and no change says so. */
async function requireView(options: EventsOptions, stream: Stream): Promise<void> {
  if (stream.view.until <= options.now()) await renewView(options, stream);
}

/** Sends which clusters reported, also when nothing is new: a page must know which clusters' state is fresh and which is stale. */
async function sendReports(
  options: EventsOptions,
  streams: ReadonlySet<Stream>,
  reported: readonly string[],
): Promise<void> {
  const all = [...new Set(reported)];
  const sent = [...streams].map(async (stream) => {
    await requireView(options, stream);
    const { clusters, isStaff } = stream.view;
    const ids = all.filter((id) => isStaff || clusters.has(id));
    if (ids.length > 0) send(stream, `event: reported\ndata: ${JSON.stringify(ids)}\n\n`);
  });
  await Promise.all(sent);
}

/** Sends that SSH sessions opened or ended: to operators, and to the sessions' people. */
async function sendSessions(
  _options: EventsOptions,
  streams: ReadonlySet<Stream>,
  changes: readonly Heard<'consoleSessions'>[],
): Promise<void> {
  const isAll = changes.some(({ kind }) => kind !== 'sessions');
  const people = new Set(changes.flatMap((one) => (one.kind === 'sessions' ? one.userId : [])));
  for (const stream of streams) {
    const { userId, isStaff } = stream.view;
    const isOf = isAll || people.has(userId);
    const topics = [...(isStaff ? ['ssh-sessions'] : []), ...(isOf ? ['my-ssh-sessions'] : [])];
    if (topics.length > 0) send(stream, `event: changed\ndata: ${JSON.stringify(topics)}\n\n`);
  }
}
