/**
 * The live stream (server-sent events) sends each person the topics that changed, if they may read them. A topic carries no
 * data: the page reads the new state by an operation of the APIs, which checks permissions again. No event is kept: a
 * page that was disconnected reads everything again.
 *
 *     me                 the person, their keys and memberships
 *     sign-ins           the browsers that they are signed in with
 *     organization/ID    an organization that they belong to      members/ID    its members
 *     requests           their access requests                    requests/ORG  members' requests, for those who decide them
 *     cluster/UUID       a cluster that they may see or use, or whose access list they may see
 *     installation       for operators: anything that they see
 *     ssh-sessions       for operators: everyone's SSH sessions   my-ssh-sessions   the person's own SSH sessions
 *     everything         too many changes to list
 *
 * The number of streams is limited, per person and in total. Each carries a heartbeat and ends after a time limit, so that
 * a client that is gone, or never reads, holds no memory for long.
 */
import type { ServerResponse } from 'node:http';
import { isInService } from '../../domain/clusters/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import type { Logger } from '../../lib/log.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { type Heard, hears, type Reader, type Store } from '../../store/engine/index.ts';
import { fromTime } from '../../store/engine/time.ts';
import { listLiveGrants } from '../../store/organizations/grants.ts';
import { findMembership, listMembershipsOf } from '../../store/organizations/memberships.ts';
import { listStaffKeys } from '../../store/people/people.ts';
import type { OpenSession, Sessions } from './sessions.ts';

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
  viewedAt: number;
  later: Changed | undefined;
  timer: NodeJS.Timeout | undefined;
  close(): void;
}

/** Changes within this window are sent together. */
const gatherMs = 150;
const betweenViewsMs = 1_000;
const reportedMs = 2_000;
/** SSH sessions that open and end within this window are announced together: a busy gateway has dozens a second. */
const sessionsMs = 2_000;
const heartbeatMs = 10_000;
const longestMs = 15 * 60_000;
const mostOfPerson = 12;
const most = 4_000;
const mostWaiting = 16_384;
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
    /** Answers with a stream. Throws `service_unavailable` where too many are open. */
    async open(session: OpenSession, response: ServerResponse): Promise<void> {
      const { userId } = session;
      if (streams.size >= most) {
        throw new DomainError('service_unavailable', 'Too many pages are open. Try again in a minute.');
      }
      const view = await viewOf(store.read, userId, now());
      if (response.destroyed) return;
      const own = [...streams].filter((one) => one.session.userId === userId);
      // The stream of a page that vanished may still count, so the oldest is closed.
      if (own.length >= mostOfPerson) own[0]?.close();
      response.writeHead(200, {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-store',
        // Turns off the buffer of a proxy in front.
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

/** Gathers items for `ms` and sends them together. Returns a function that stops this. */
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
    // If the issuer does not answer, the stream closes; opening the next one checks the session again.
    if (!isOpen) return stream.close();
  }
  const why = changed ? concerns(view, changed) : 'own';
  if (changed && why === 'cluster') {
    const waitMs = stream.viewedAt + betweenViewsMs - performance.now();
    if (waitMs > 0) return sendLater(options, stream, changed, waitMs);
  }
  await renewView(options, stream, why !== undefined);
  const topics = changed ? topicsFor(stream.view, changed) : ['everything'];
  // With a cluster more or less, the person's own data (`me`) has changed.
  if (stream.view.clusters.symmetricDifference(view.clusters).size > 0) topics.push('me');
  if (topics.length > 0) send(stream, `event: changed\ndata: ${JSON.stringify([...new Set(topics)])}\n\n`);
}

/** Clusters change often, and any change may concern a grant: changes within `waitMs` are handled together. */
function sendLater(options: EventsOptions, stream: Stream, changed: Changed, waitMs: number): void {
  stream.later = stream.later ? merge(stream.later, changed) : changed;
  stream.timer ??= setTimeout(() => {
    const { later } = stream;
    stream.later = undefined;
    stream.timer = undefined;
    sendTopics(options, stream, later).catch((error: unknown) => reportFailure(options, error));
  }, waitMs).unref();
}

/** Renews the view where it may have changed, or a grant has expired: no change announces that. */
async function renewView({ store, now }: EventsOptions, stream: Stream, isChanged = false): Promise<void> {
  if (!isChanged && stream.view.until > now()) return;
  stream.viewedAt = performance.now();
  stream.view = await viewOf(store.read, stream.session.userId, now());
}

/** Sends the IDs of clusters that reported, even without news: pages distinguish fresh state from stale state. */
async function sendReports(
  options: EventsOptions,
  streams: ReadonlySet<Stream>,
  reported: readonly string[],
): Promise<void> {
  const all = [...new Set(reported)];
  const sent = [...streams].map(async (stream) => {
    await renewView(options, stream);
    const { clusters, isStaff } = stream.view;
    const ids = all.filter((id) => isStaff || clusters.has(id));
    if (ids.length > 0) send(stream, `event: reported\ndata: ${JSON.stringify(ids)}\n\n`);
  });
  await Promise.all(sent);
}

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

interface View {
  userId: string;
  organizations: ReadonlySet<string>;
  managed: ReadonlySet<string>;
  /** IDs of the clusters that they may see or use, and of those in service whose access they see as managers. */
  clusters: ReadonlySet<string>;
  isStaff: boolean;
  /** When the first of the person's grants expires, in ms since 1970. */
  until: number;
}

async function viewOf(db: Reader, userId: string, now: number): Promise<View> {
  const [memberships, grants, staffKeys] = await Promise.all([
    listMembershipsOf(db, userId),
    listLiveGrants(db, userId, now),
    listStaffKeys(db, userId),
  ]);
  const organizations = memberships.map(({ organizationId }) => organizationId);
  const clusters = new Set(grants.map(({ clusterId }) => clusterId));
  const managed = new Set<string>();
  for (const organizationId of organizations) {
    const held = await findMembership(db, organizationId, userId, now);
    const isManager = held?.permissions.has('members.manage') ?? false;
    if (isManager) managed.add(organizationId);
    const isOfClusters = [...(held?.permissions ?? [])].some((key) => key.startsWith('clusters.'));
    if (!isManager && !isOfClusters) continue;
    for (const cluster of await listOrganizationClusters(db, organizationId)) {
      // `listMemberAccess` lists no access to clusters that are out of service.
      if (isOfClusters || isInService(cluster)) clusters.add(cluster.id);
    }
  }
  const until = Math.min(
    ...grants.map(({ expiresAt }) => (expiresAt === null ? Infinity : fromTime(expiresAt))),
  );
  return {
    userId,
    organizations: new Set(organizations),
    managed,
    clusters,
    isStaff: staffKeys.length > 0,
    until,
  };
}

interface Changed {
  people: ReadonlySet<string>;
  /** People whose sign-ins to the console changed. */
  browsersOf: ReadonlySet<string>;
  /** People whose access requests were made or decided, and the organizations of these requests. */
  askers: ReadonlySet<string>;
  askedIn: ReadonlySet<string>;
  organizations: ReadonlySet<string>;
  /** Clusters that reported, or that a decision changed (settings, grants); `decided` has only the latter. */
  clusters: ReadonlySet<string>;
  decided: ReadonlySet<string>;
  organizationsOfPeople: ReadonlySet<string>;
}

const mostPeople = 200;
const newSet = () => new Set<string>();

/** Returns undefined where there are too many changes to check one by one, or everything may have changed. */
async function gather(db: Reader, changes: readonly Heard<'consoleTopics'>[]): Promise<Changed | undefined> {
  if (changes.some((change) => change.kind === 'everything')) return undefined;
  const [people, browsersOf, askers, askedIn] = [newSet(), newSet(), newSet(), newSet()];
  const [organizations, clusters, decided] = [newSet(), newSet(), newSet()];
  for (const change of changes) {
    if (change.kind === 'person') people.add(change.userId);
    else if (change.kind === 'browsers') browsersOf.add(change.userId);
    else if (change.kind === 'requests') {
      askers.add(change.userId);
      askedIn.add(change.organizationId);
    } else if (change.kind === 'organization') organizations.add(change.organizationId);
    else if (change.kind === 'report' || change.kind === 'cluster') {
      clusters.add(change.clusterId);
      if (change.kind === 'cluster') decided.add(change.clusterId);
    }
  }
  if (people.size > mostPeople) return undefined;
  const memberships = await Promise.all([...people].map((userId) => listMembershipsOf(db, userId)));
  const organizationsOfPeople = new Set(memberships.flat().map(({ organizationId }) => organizationId));
  return { people, browsersOf, askers, askedIn, organizations, clusters, decided, organizationsOfPeople };
}

function topicsFor(view: View, changed: Changed): string[] {
  const { people, browsersOf, askers, askedIn, organizations, clusters, organizationsOfPeople } = changed;
  const own = (ids: ReadonlySet<string>) => [...ids].filter((id) => view.organizations.has(id));
  return [
    ...(people.has(view.userId) ? ['me'] : []),
    ...(browsersOf.has(view.userId) ? ['sign-ins'] : []),
    ...(askers.has(view.userId) ? ['requests'] : []),
    ...[...askedIn].filter((id) => view.managed.has(id)).map((id) => `requests/${id}`),
    ...own(organizations).flatMap((id) => [`organization/${id}`, `members/${id}`]),
    ...own(organizationsOfPeople).map((id) => `members/${id}`),
    ...[...clusters].filter((id) => view.isStaff || view.clusters.has(id)).map((id) => `cluster/${id}`),
    ...(view.isStaff ? ['installation'] : []),
  ];
}

/** Why a person's view must be renewed: a change of their `own` data, or of a `cluster`, which may concern a grant. */
function concerns(view: View, { people, organizations, decided }: Changed): 'own' | 'cluster' | undefined {
  const isOwn = people.has(view.userId) || [...organizations].some((id) => view.organizations.has(id));
  if (isOwn) return 'own';
  return decided.size > 0 ? 'cluster' : undefined;
}

function merge(one: Changed, other: Changed): Changed {
  const names = Object.keys(one) as (keyof Changed)[];
  return Object.fromEntries(names.map((name) => [name, one[name].union(other[name])])) as unknown as Changed;
}
