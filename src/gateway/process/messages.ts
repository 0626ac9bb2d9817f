/**
 * The messages between the service and a gateway process: one JSON object a line. Each side parses a line into one of
 * these types; a line of an unknown type comes from a newer version and is ignored. A malformed message harms no
 * other: if it is a question, it is answered as undecided.
 *
 * `hello`, `handOver` and `drain` never change: the service must be able to replace a process of any version.
 */
import type { SshSession } from '../../domain/access/ssh-session.ts';
import type { EventLevel } from '../../lib/log.ts';
import { mostTrustedProxies } from '../../lib/source-address.ts';
import { type Attempt, type Decision, isFilter, type SessionFilter } from '../ssh/decision.ts';
import type { GatewayEvent } from '../ssh/events.ts';
import type { GatewaySettings } from '../ssh/index.ts';
import { type Check, choice, flag, list, number, optional, record, shape, text } from './shape.ts';

/** Increased with an incompatible change of any other message, which ends the sessions of processes of the version before. */
export const protocolVersion = 2;

/** The settings that a process needs to serve. Keys are passed only here: never in arguments, environment or a file of its own. */
export interface Settings extends Required<GatewaySettings> {
  listen: { host: string; port: number };
  /** True if there may be other servers, at which people can log in while this service is away. */
  hasOthers?: boolean;
  debug: boolean;
}

/** The first message of a process on each connection. */
export interface Hello {
  type: 'hello';
  protocol: number;
  build: string;
  pid: number;
  /** "host:port" as configured, once the process listens. */
  listen?: string | undefined;
  /** The port that the process is bound to, once it listens. */
  port?: number | undefined;
  draining: boolean;
  /** IDs of the sessions that are open, or whose records are still to be delivered. */
  sessions: readonly string[];
}

export type FromProcess =
  | Hello
  /** An open session; the process sends all of them after the welcome, and on `count`. */
  | { type: 'session'; session: SshSession }
  | { type: 'listening'; port: number }
  | { type: 'listenFailed'; code: string; message: string }
  | { type: 'authorize'; id: number; attempt: Attempt; openOn?: { host: string; port: number } | undefined }
  /** Numbered from 1 in the life of a process; delivered again until `recorded`. */
  | { type: 'record'; seq: number; event: GatewayEvent }
  | { type: 'log'; level: EventLevel; event: string; fields: Record<string, unknown> }
  /** The answer to `recheck`: the matching sessions have been confirmed or closed. Not sent where that failed. */
  | { type: 'rechecked'; id: number }
  /** The answer to `count`, sent after each session with its current state. */
  | { type: 'counted'; id: number }
  /** Sent every second (`aliveMs`), so that the service notices a stalled process. */
  | { type: 'alive' }
  /** The process ends by itself: nothing is left to do, or a signal asked it to. */
  | { type: 'ending' }
  | { type: 'handedOver'; pid: number }
  | { type: 'handOverFailed'; message: string };

export type ToProcess =
  | { type: 'welcome'; settings: Settings }
  | { type: 'configure'; settings: Settings }
  | { type: 'decision'; id: number; decision: Decision }
  /** The service could not decide, for the reason in `message`. */
  | { type: 'undecided'; id: number; message: string }
  | { type: 'recorded'; seq: number }
  | { type: 'recheck'; id: number; filter: SessionFilter }
  | { type: 'close'; filter: SessionFilter; reason: string; text: string }
  | { type: 'count'; id: number }
  /** Start another process, with this command, that listens on the same socket. */
  | { type: 'handOver'; command: readonly string[] }
  /** Accept no new connections, and exit with the last. */
  | { type: 'drain' }
  /** Notify all sessions and exit, as the whole service does. */
  | { type: 'stop' };

export const aliveMs = 1_000;

/** The sender truncates longer texts, which come from people, login nodes and errors. */
const longestText = 4_000;
/** Longest list in a message, such as the commands of a session. */
const longestList = 100;
/** Limit on keys of one kind that are valid at the same time, with some to spare. */
const mostKeys = 10;
/** Limit on sessions of a process, whose IDs its hello lists. */
export const mostSessions = 100_000;

/** A message as a line. Texts in it may come from outside: each is cut to the length that the other side accepts. */
export function lineOf(message: object): string {
  const fitting = (_key: string, value: unknown) =>
    typeof value === 'string' ? value.slice(0, longestText) : value;
  return `${JSON.stringify(message, fitting)}\n`;
}

const short = text(longestText);
const address = shape({ host: short, port: number });
/** In ms since 1970, within the range of a Date. */
const time: Check = (value) => !Number.isNaN(new Date(Number(value)).getTime()) && number(value);
const session = shape({
  ...{ id: short, loginName: short, clusterId: short, userId: short, username: short, keyId: short },
  ...{ fingerprint: short, remoteAddress: short, loginNode: short, openedAt: short },
  ...{ channels: number, bytesUp: number, bytesDown: number },
  ...{ job: optional(short), jobNode: optional(short) },
});
const attempt = shape({ loginName: short, publicKey: short, fingerprint: short, remoteAddress: short });
const subject = shape({ clusterId: short, userId: short, keyId: short });
const uses = shape({
  ...{
    commands: list(short, longestList),
    commandCount: number,
    forwards: list(short, longestList),
    forwardCount: number,
  },
  ...{ shells: number, files: number },
});
const refused = shape({ at: time, subject, attempt, reason: short, message: short });
const event: Check = (value) =>
  shape({ kind: choice('opened'), at: time, session })(value) ||
  shape({ kind: choice('closed'), at: time, session, reason: short, uses })(value) ||
  (shape({ kind: choice('refused') })(value) && refused(value));
const reached = { host: short, port: number, hostKey: short };
const hop: Check = (value) => shape({ ...reached, via: optional(hop) })(value);
const loginNode = shape({ ...reached, via: optional(hop), hasShell: optional(flag) });
const route = shape({
  ...{ clusterId: short, userId: short, username: short, keyId: short, shell: short, loginNode },
  job: optional(shape({ id: optional(short), node: optional(short) })),
  lapse: optional(shape({ leftMs: number, text: short })),
});
const decision: Check = (value) =>
  shape({ allowed: (is) => is === true, route })(value) ||
  shape({
    allowed: (is) => is === false,
    ...{ reason: short, message: short, disclose: flag, subject: optional(subject) },
    untilSignIn: optional(flag),
  })(value);

const fromProcess: Record<FromProcess['type'], Check> = {
  hello: shape({
    ...{ protocol: number, build: short, pid: number, draining: flag, sessions: list(short, mostSessions) },
    ...{ listen: optional(short), port: optional(number) },
  }),
  session: shape({ session }),
  listening: shape({ port: number }),
  listenFailed: shape({ code: short, message: short }),
  authorize: shape({ id: number, attempt, openOn: optional(address) }),
  record: shape({ seq: number, event }),
  log: shape({ level: choice('debug', 'info', 'warn', 'error'), event: short, fields: record }),
  rechecked: shape({ id: number }),
  counted: shape({ id: number }),
  alive: shape({}),
  ending: shape({}),
  handedOver: shape({ pid: number }),
  handOverFailed: shape({ message: short }),
};

const settings = shape({
  ...{ listen: address, limits: record, hasOthers: optional(flag), securityKeys: flag },
  ...{ hostKeys: list(short, mostKeys), clientKeys: list(short, mostKeys) },
  ...{ trustedProxies: list(short, mostTrustedProxies), debug: flag },
  proxyProtocol: choice('required', 'optional', 'off'),
});

const toProcess: Record<ToProcess['type'], Check> = {
  welcome: shape({ settings }),
  configure: shape({ settings }),
  decision: shape({ id: number, decision }),
  undecided: shape({ id: number, message: short }),
  recorded: shape({ seq: number }),
  recheck: shape({ id: number, filter: isFilter }),
  close: shape({ filter: isFilter, reason: short, text: short }),
  count: shape({ id: number }),
  handOver: shape({ command: list(short, longestList) }),
  drain: shape({}),
  stop: shape({}),
};

/** A message of a known type with invalid fields. `id`: that of the question, where it has one. */
export interface Malformed {
  type: 'malformed';
  of: string;
  id: number | undefined;
}

/** Parses a line from a process; undefined when its type is unknown. Throws when it is no message at all. */
export function readFromProcess(line: string): FromProcess | Malformed | undefined {
  return read(line, fromProcess) as FromProcess | Malformed | undefined;
}

/** Parses a line from the service; undefined when its type is unknown. Throws when it is no message at all. */
export function readToProcess(line: string): ToProcess | Malformed | undefined {
  return read(line, toProcess) as ToProcess | Malformed | undefined;
}

function read(line: string, checks: Record<string, Check>): unknown {
  const message: unknown = JSON.parse(line);
  if (!shape({ type: short })(message)) throw new Error('a line that is no message');
  const { type, id } = message as { type: string; id?: unknown };
  if (!Object.hasOwn(checks, type)) return undefined;
  if (checks[type]?.(message)) return message;
  return { type: 'malformed', of: type, id: number(id) ? id : undefined };
}
