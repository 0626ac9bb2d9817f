/**
 * Structured logging: one JSON line an event on stderr, so that stdout stays for data.
 * Secrets and request bodies never go in here.
 *
 * To add an event: one line in `LogEvents`, its name and its fields, and a call of `log` where it happens. Metrics are
 * made from these events (`metrics.ts`): a name or a field that is not here is a type error in both.
 */
import { pino } from 'pino';
import { DomainError } from '../domain/error.ts';
import { escapeControls } from '../domain/text.ts';
import { createStderrWriter } from './log-writer.ts';

type Thrown = unknown;

interface Login {
  id: string;
  loginName?: string | undefined;
  fingerprint?: string | undefined;
  remoteAddress: string;
  clusterId?: string | undefined;
  userId?: string | undefined;
  keyId?: string | undefined;
}

type OpenSession = Partial<Login & { username: string; loginNode: string }>;

/** A cluster by its name, and its Slurm or Kubernetes side. */
interface ClusterSide {
  cluster: string;
  side: 'slurm' | 'kubernetes';
}

/** A sync pass over a side, with some of the commands that caused it, as far as they are known. */
interface SidePass extends ClusterSide {
  clusterId: string;
  commands?: readonly string[];
}

export interface LogEvents {
  'serve.ready': {
    platform: string;
    business: string;
    issuer: string;
    gateway: string;
    hostKey: string;
    fastCiphers: boolean;
    node: string;
  };
  'serve.failed': { message: string; status: number; error?: Thrown };
  'serve.stopping': { signal: string; message: string };
  'serve.left': { message: string };
  'serve.stopped': { message: string };
  'serve.reloading': { message: string };
  'serve.reload.refused': { message: string };
  'serve.notify.failed': { message: string };
  /** The schema is upgraded to this version, all of it or nothing; the backup has the previous state. */
  'database.upgrading': { backup: string };
  /** Repeated at growing intervals; `waitedMs`: how long the service has waited. */
  'database.away': { message: string; waitedMs: number };
  'database.back': Record<string, never>;
  'database.clock': { differsMs: number };
  'database.open': { message: string };
  /** The database has lost committed transactions: its version now, and the one that it had. */
  'database.went_back': { version: number; committed: number; message: string };
  /** Former primaries that still take writes and are not used, because another host has taken over; 0 when none is left. */
  'database.former_primary': { primaries: number; message: string };
  /** The newest timeline could not be stored in the data directory. */
  'database.timeline.failed': { error: Thrown };
  'database.standby': { synchronousStandbys: string; synchronousCommit: string };
  'certificate.ending': { setting: string; file: string; endsAt: string; message: string };
  'certificate.ended': { setting: string; file: string; endsAt: string; message: string };
  'acme.waiting': { hosts: readonly string[]; message: string };
  'acme.obtained': { hosts: readonly string[]; endsAt: string; message: string };
  'acme.failed': { hosts: readonly string[]; failures: number; retryAt: string; message: string };
  'process.warning': { name: string; message: string };
  'process.failed': { error: Thrown };
  /** Lines that were dropped because no reader took them. */
  'log.lost': { lines: number };
  'store.written': { ms: number };
  /** `ms`: negative for a jump back. */
  'clock.jumped': { ms: number; message: string };

  /** People whose access or keys have lapsed or are about to; `userIds` lists some of them. */
  'access.lapsing': { what: 'access' | 'keys'; people: number; userIds: readonly string[]; message: string };
  'access.lapsed': { what: 'access' | 'keys'; people: number; userIds: readonly string[]; message: string };
  'access.check.failed': { error: Thrown };
  'permissions.ended': { people: number };
  'permissions.end.failed': { error: Thrown };
  /** `ended`: members whose access got an end because no owner confirmed it in a review. */
  'access.reviewed': { ended: number };
  'access.review.failed': { error: Thrown };

  /** The groups that the issuer reports for a person were not applied. */
  'groups.refused': { userId: string; message: string };
  /** Number of people whose access the group rules changed at the start. */
  'groups.applied': { people: number };
  'groups.apply.failed': { userId?: string; error: Thrown };

  'http.request': {
    api: string;
    requestId: string;
    /** Left out where the path is no operation of the API. */
    operation: string | undefined;
    method: string;
    path: string;
    /** 499: the client closed the connection. */
    status: number;
    address: string | undefined;
    ms: number;
    userId: string | undefined;
    commandId: string | undefined;
    /** The reason of a 401; left out otherwise. */
    refusal: string | undefined;
  };
  /** The first one of a source in ten seconds; the others are summed up. */
  'http.connection.refused': { name: string; address: string; reason: string; open: number };
  'http.connections.refused': { name: string; source: string; reason: string; connections: number };
  'http.failed': { requestId: string; method: string; path: string; error: Thrown };
  'http.unready': { error: Thrown };

  /** A key whose file here differs from the one in the database. */
  'secrets.differ': { name: string; file: string; message: string };
  /** `id`: of the key that is used now. */
  'key.changed': { kind: string; id: string; message: string };
  /** Keys that were changed on another server, and cannot be decrypted here. */
  'secrets.unreadable': { error: string };

  'clients.failed': { path: string; error: Thrown };

  'issuer.failed': { error: Thrown };
  'issuer.request.failed': { error: Thrown };
  'sweep.failed': { error: Thrown };
  'issuer.sign_in': { address: string; userId: string; hasFactor: boolean };
  'issuer.second_factor.refused': { address: string; userId: string };
  'issuer.account': { address: string; userId: string; what: string };
  'issuer.sign_in.refused': { address: string };
  'issuer.password.changed': { address: string; userId: string };
  'issuer.sign_in.throttled': { address: string; seconds: number };
  'issuer.signed_out': { clientId: string | undefined; grantId: string };
  'issuer.token.reused': { clientId: string | undefined; grantId: string; address: string };
  'issuer.code': { address: string; userId: string; clientId: string };
  'issuer.device.approved': DeviceAnswer;
  'issuer.device.denied': DeviceAnswer;

  'console.signed_in': { address: string; userId: string; program: string };
  'console.signed_out': { address: string; userId: string };
  /** A sign-in at the console could not begin, or failed on the way back from the issuer. */
  'console.sign_in.failed': { address: string; error: Thrown };
  /** The issuer refused a session a new token, which ended the session. */
  'console.session.ended': { userId: string; error: Thrown };
  'console.request.failed': { path: string; error: Thrown };
  'console.events.failed': { error: Thrown };

  'gateway.started': { host: string; port: number };
  'gateway.draining': { sessions: number; ms: number };
  'gateway.stopped': Record<never, never>;
  'gateway.listen.failed': { error: Thrown };
  /** The first one of a source and reason in ten seconds; the others are summed up. */
  'gateway.connection.refused': { remoteAddress: string; reason: string; detail?: string };
  'gateway.connections.refused': { source: string; reason: string; connections: number };
  /** An exception ended this connection and no other. */
  'gateway.connection.failed': { id: string; remoteAddress: string; error: Thrown };
  'gateway.login.accepted': OpenSession;
  'gateway.login.refused': Login & { reason: string; detail?: string | undefined; cause?: Thrown };
  /** Refused logins of a source in ten seconds that have no line of their own. */
  'gateway.logins.refused': { source: string; reason: string; logins: number };
  'gateway.session.closed': OpenSession & {
    /** The part after a colon is about one case. */
    why: string;
    durationMs: number;
    bytesUp: number | undefined;
    bytesDown: number | undefined;
  };
  'gateway.sessions.lost': { sessions: number };
  'gateway.sessions.presumed': { server: string; sessions: number };
  'gateway.sessions.reopened': { sessions: number };
  'gateway.sessions.failed': { error: Thrown };
  'servers.message.failed': { topic: string; error: string };
  'gateway.node.ended': { id: string; by: string; detail: string };
  /** A message of either side that the relay does not pass on. */
  'gateway.refused': { id: string; side: string; reason: string };
  'gateway.recheck.failed': { id?: string; error: Thrown };
  /** Lines of a gateway process that exceeded the queue while the service was away. */
  'gateway.log.dropped': { lines: number };
  /** Login nodes could not be asked whether they accept the gateway's next key. */
  'gateway.keys.unasked': { error: Thrown };
  /** The account that the gateway processes run as. */
  'gateway.process.account': { account: string };
  'gateway.process.started': { pid: number };
  /** A gateway process from before this start. */
  'gateway.process.found': { pid: number; sessions: number };
  'gateway.process.draining': { pid: number; sessions: number };
  'gateway.process.ended': {
    pid: number;
    code?: number | null;
    signal?: string | null;
    sessions: number;
    /** The end of its stderr. */
    lastWords: string | undefined;
  };
  /** A process that speaks another protocol version: it takes no logins, and its sessions end unconfirmed. */
  'gateway.process.foreign': { pid: number; protocol: number; sessions: number };
  /** A process that did not confirm a recheck, as after a revocation, within a second. */
  'gateway.process.unreached': { pid: number; sessions: number };
  /** All sessions of an unreached process have been checked again. */
  'gateway.process.reached': { pid: number };
  /** A process from before this start that did not connect. */
  'gateway.process.silent': { pid: number };
  'gateway.process.failed': { error: Thrown; failures: number; retryMs: number };
  /** A message between the service and a gateway process could not be read or handled. */
  'gateway.process.fault': { pid?: number | undefined; error: Thrown };
  'gateway.records.failed': { error: Thrown; waiting: number; lost: number };
  'gateway.records.lost': { lost: number };

  'backup.made': { file: string; bytes: number; ms: number; removed: number };
  /** The backup was passed to the configured command. */
  'backup.handed_on': { file: string; ms: number };
  'backup.failed': { message: string; failures: number; retryMs: number };
  /** Files of a backup that could not be read, or old backups that could not be removed. */
  'backup.incomplete': { message: string };

  'audit.sign.failed': { error: string };
  /** Number of deleted entries of the trail that exceeded the retention. */
  'retention.deleted': { entries: string };
  'retention.failed': { error: string };
  'retention.waits': { message: string };
  'erasure.done': { userId: string };
  'erasure.failed': { error: string };
  'audit.file.working': { file: string };
  'audit.file.failed': { file: string; error: string };

  /** The first change after all earlier ones were in force. */
  'sync.changed': ClusterSide;
  /** `waiting`: number of hosts that have not confirmed the newest list. */
  'sync.observed': ClusterSide & { waiting: number };
  /** `down`: number of login nodes that the cluster's last report lists as down. */
  'sync.login_nodes': { cluster: string; down: number };
  /** `behindMs`: age of the oldest change that is not in force; 0 where all are. */
  'sync.passed': SidePass & { ms: number; behindMs: number };
  'sync.applied': SidePass & { generation: number; applied: boolean; activated: boolean; ms: number };
  'sync.converged': SidePass & { ms: number };
  'sync.released': ClusterSide;
  'sync.left': ClusterSide;
  'sync.refused': SidePass & { failure: string };
  'sync.failed': SidePass & {
    error: Thrown;
    failures: number;
    retryMs: number;
    ms: number;
    behindMs: number;
  };
  'sync.notice.failed': { error: Thrown };
  'sync.sweep.failed': { error: Thrown };

  /** Another server of the same database has appeared, or is gone. */
  'servers.seen': { serverId: string; name: string; version: string };
  'servers.gone': { serverId: string; name: string };
  /** Settings of the other server differ that must be the same. */
  'servers.differ': { serverId: string; name: string; message: string };
  /** How far the database's clock is ahead of this host's. */
  'servers.clock': { differsMs: number };
  'servers.clock.wrong': { differsMs: number; message: string };
  'servers.clock.right': { differsMs: number };
  'servers.counted': { servers: number };
  /** This server could not renew its registration, or ask for due work. */
  'servers.failed': { error: Thrown };
  /** Leader election: this server does the work that is done once for all servers, or stops, as another may do it. */
  'leader.began': { token: number };
  'leader.lost': { token: number };
  'leader.left': { token: number };
  'leader.given_up': { message: string };
  'leader.end.failed': { error: Thrown };

  'simulated.applied': {
    cluster: string;
    generation: number;
    schedulerGeneration: number;
    added: number;
    removed: number;
    restarts: readonly string[];
  };
  'simulated.refused': { cluster: string; desiredGeneration: number; failure: string | undefined };
  'simulated.unsafe': { cluster: string; message: string };
  'simulated.login_node_refused': { cluster: string; message: string };
  'slurm.applied': { cluster: string; generation: number; added: number; removed: number };
  /** A host is up to date: the `done`th of `hosts`. */
  'slurm.progress': { cluster: string; host: string; done: number; hosts: number; ms: number };
  /** A host that is no longer in use: it was cleaned, or it is left as it is. */
  'slurm.cleaned': { cluster: string; host: string };
  'slurm.left': { cluster: string; words: string };
  'slurm.fault': { cluster: string; words: string };
  'slurm.drifted': { cluster: string; words: string };
  /** A manual change of the site, perhaps intended. */
  'slurm.noticed': { cluster: string; words: string };
  'kubernetes.permitted': { cluster: string; created: number; repaired: number; removed: number };

  login_node_exited: {
    pid: number | undefined;
    code: number | null;
    signal: string | null;
    dataDir: string;
  };
  login_node_process_error: { error: Thrown };
  login_node_stderr: { text: string };
  login_node_sessions_left: { error: Thrown };
  login_node_start_failed: { dataDir: string; error: Thrown };
  login_node_crashed: { error: Thrown };
  login_node_without_namespace: { reason: string };
  login_node_listen_error: { error: Thrown };
  login_node_connection_error: { error: Thrown };
  login_node_session_opened: { username: string };
  login_node_session_failed: { username: string; error: Thrown };
}

interface DeviceAnswer {
  userId: string;
  clientId: string;
  address: string;
  deviceAddress: string;
}

export type EventName = keyof LogEvents;
export type EventLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogLevel = EventLevel | 'silent';

export type Logger = Record<
  EventLevel,
  <Name extends EventName>(event: Name, fields: LogEvents[Name]) => void
>;

export function createLogger(level: LogLevel, write: (line: string) => void = createStderrWriter()): Logger {
  const lines = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }), log: readable },
    },
    // JSON leaves C1 and bidirectional control characters as they are, which a terminal would obey.
    { write: (line) => write(`${escapeControls(line.slice(0, -1))}\n`) },
  );
  const at = (name: EventLevel) => (event: EventName, fields: object) => {
    if (lines.isLevelEnabled(name)) lines[name]({ event, ...fields });
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Limit on a text in a line, in UTF-16 units: many texts come from clients. */
const mostText = 2_000;

/** The fields of a line as data: errors become objects, as JSON shows nothing of them. Texts are cut. */
export function readable(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)]));
}

/**
 * An error as data, with its causes: a few links only, since a chain may be a circle. A DomainError gets no stack,
 * which says nothing that its message does not.
 */
function plain(value: unknown, links = 5): unknown {
  if (typeof value === 'string') return value.length > mostText ? `${value.slice(0, mostText)}…` : value;
  if (!(value instanceof Error)) return value;
  const given = value instanceof DomainError ? undefined : value.stack;
  const { name, message, stack } = readable({ name: value.name, message: value.message, stack: given });
  const { cause } = value;
  return { name, message, stack, cause: links > 0 ? plain(cause, links - 1) : undefined };
}
