/**
 * What the service and a gateway process send each other: one JSON object a line. Each side parses what it gets into one
 * of these, or into nothing; a type that it does not know is a newer version's and passes unheeded.
 *
 * `hello`, `handOver` and `drain` never change: the service must be able to replace a process of any version.
 */
import type { SshSession } from '../domain/ssh-session.ts';
import type { Attempt, Decision } from '../gateway/decision.ts';
import type { GatewayEvent } from '../gateway/events.ts';
import type { GatewayOptions, SessionFilter } from '../gateway/index.ts';
import type { EventLevel } from '../lib/log.ts';
import { type Check, choice, flag, list, number, optional, record, shape, text } from './shape.ts';

/** Changes when a message other than those three does. */
export const protocolVersion = 1;

/** What a process needs to serve. The keys are here and nowhere else: never in arguments, environment or a file of its own. */
export interface Settings {
  listen: { host: string; port: number };
  hostKey: string;
  /** Those that clients are told of besides. */
  otherHostKeys?: readonly string[];
  clientKey: string;
  limits: NonNullable<GatewayOptions['limits']>;
  trustedProxies: readonly string[];
  proxyProtocol: NonNullable<GatewayOptions['proxyProtocol']>;
  /** Whether debug lines of the log are wanted. */
  debug: boolean;
}

/** The first message of a process on each connection. */
export interface Hello {
  type: 'hello';
  protocol: number;
  /** Which build of the program it runs. */
  build: string;
  pid: number;
  /** "host:port" as configured, once it listens. */
  listen?: string | undefined;
  /** The port it got, once it listens. */
  port?: number | undefined;
  draining: boolean;
  /** IDs of the sessions that are open, or whose records are still to be delivered. */
  sessions: readonly string[];
}

export type FromProcess =
  | Hello
  /** A session that is open; all of them follow on the welcome. */
  | { type: 'session'; session: SshSession }
  | { type: 'listening'; port: number }
  | { type: 'listenFailed'; code: string; message: string }
  | { type: 'authorize'; id: number; attempt: Attempt; openOn?: { host: string; port: number } | undefined }
  /** Numbered from 1 in the life of a process; delivered again until `recorded`. */
  | { type: 'record'; seq: number; event: GatewayEvent }
  | { type: 'log'; level: EventLevel; event: string; fields: Record<string, unknown> }
  /** The answer to `recheck`: whom it concerned has been asked about, and closed where need be. */
  | { type: 'rechecked'; id: number }
  | { type: 'counted'; id: number; sessions: readonly SshSession[] }
  | { type: 'handedOver'; pid: number }
  | { type: 'handOverFailed'; message: string };

export type ToProcess =
  | { type: 'welcome'; settings: Settings }
  | { type: 'decision'; id: number; decision: Decision }
  /** Nobody can say. */
  | { type: 'undecided'; id: number; message: string }
  | { type: 'recorded'; seq: number }
  | { type: 'recheck'; id: number; filter: SessionFilter }
  | { type: 'close'; filter: SessionFilter; reason: string; text: string }
  | { type: 'count'; id: number }
  /** Start another process, with this command, that listens on the same socket. */
  | { type: 'handOver'; command: readonly string[] }
  /** Take no new connections, and end with the last. */
  | { type: 'drain' }
  /** Notify everybody and end, as the whole service does. */
  | { type: 'stop' };

const short = text(4_000);
const address = shape({ host: short, port: number });
const session = shape({
  ...{ id: short, loginName: short, clusterId: short, userId: short, username: short, keyId: short },
  ...{ fingerprint: short, remoteAddress: short, loginNode: short, openedAt: short },
  ...{ channels: number, bytesUp: number, bytesDown: number },
});
const attempt = shape({ loginName: short, publicKey: short, fingerprint: short, remoteAddress: short });
const subject = shape({ clusterId: short, userId: short, keyId: short });
const uses = shape({
  ...{ commands: list(short, 100), commandCount: number, forwards: list(short, 100), forwardCount: number },
  ...{ shells: number, files: number },
});
const refused = shape({ at: number, subject, attempt, reason: short, message: short });
const event: Check = (value) =>
  shape({ kind: choice('opened'), at: number, session })(value) ||
  shape({ kind: choice('closed'), at: number, session, reason: short, uses })(value) ||
  (shape({ kind: choice('refused') })(value) && refused(value));
const filter = shape({
  ...{ id: optional(short), clusterId: optional(short), userId: optional(short) },
  ...{ keyId: optional(short), loginNode: optional(short) },
});

const fromProcess: Record<FromProcess['type'], Check> = {
  hello: shape({
    ...{ protocol: number, build: short, pid: number, draining: flag, sessions: list(short, 100_000) },
    ...{ listen: optional(short), port: optional(number) },
  }),
  session: shape({ session }),
  listening: shape({ port: number }),
  listenFailed: shape({ code: short, message: short }),
  authorize: shape({ id: number, attempt, openOn: optional(address) }),
  record: shape({ seq: number, event }),
  log: shape({ level: choice('debug', 'info', 'warn', 'error'), event: short, fields: record }),
  rechecked: shape({ id: number }),
  counted: shape({ id: number, sessions: list(session, 100_000) }),
  handedOver: shape({ pid: number }),
  handOverFailed: shape({ message: short }),
};

const toProcess: Record<ToProcess['type'], Check> = {
  welcome: shape({
    settings: shape({
      ...{ listen: address, hostKey: short, clientKey: short, limits: record },
      otherHostKeys: optional(list(short, 10)),
      ...{ trustedProxies: list(short, 10_000), debug: flag },
      proxyProtocol: choice('required', 'optional', 'off'),
    }),
  }),
  decision: shape({
    id: number,
    decision: (value) => shape({ allowed: flag })(value),
  }),
  undecided: shape({ id: number, message: short }),
  recorded: shape({ seq: number }),
  recheck: shape({ id: number, filter }),
  close: shape({ filter, reason: short, text: short }),
  count: shape({ id: number }),
  handOver: shape({ command: list(short, 100) }),
  drain: shape({}),
  stop: shape({}),
};

/** A line of a process; undefined when its type is not known. Throws when it is none. */
export function readFromProcess(line: string): FromProcess | undefined {
  return read(line, fromProcess) as FromProcess | undefined;
}

/** A line of the service; undefined when its type is not known. Throws when it is none. */
export function readToProcess(line: string): ToProcess | undefined {
  return read(line, toProcess) as ToProcess | undefined;
}

function read(line: string, checks: Record<string, Check>): unknown {
  const message: unknown = JSON.parse(line);
  if (!shape({ type: short })(message)) throw new Error('a line that is no message');
  const { type } = message as { type: string };
  if (!Object.hasOwn(checks, type)) return undefined;
  if (!checks[type]?.(message)) throw new Error(`a message of type ${type} that is not of its form`);
  return message;
}
