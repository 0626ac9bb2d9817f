/** One gateway process, as the service knows it: its connection, and a copy of which sessions it has. */
import type { SshSession } from '../domain/ssh-session.ts';
import type { Decision, Route } from '../gateway/decision.ts';
import type { GatewayEvent } from '../gateway/events.ts';
import type { SessionFilter } from '../gateway/index.ts';
import type { Lines } from './lines.ts';
import type { FromProcess, Hello, ToProcess } from './messages.ts';
import { isGatewayProcess, startTimeOf } from './run-directory.ts';

/** Nobody waits longer for the answer of a process. */
const answerMs = 1_000;

export class Member {
  readonly pid: number;
  readonly startTime: string | undefined;
  readonly startedAt = performance.now();
  readonly sessions = new Map<string, SshSession>();
  /** Of its sessions, and of those whose records are still to come. */
  held: ReadonlySet<string> = new Set();
  hello: Hello | undefined;
  port: number | undefined;
  draining = false;
  /** The last record that came. */
  lastRecord = 0;
  /** Records that came and are not written yet, by number. */
  readonly writing = new Set<number>();
  /** Whether it lived before this service did: what it delivers may have been written already. */
  readonly isFound: boolean;
  /** Whether this process started it, and hears of its end. */
  isChild = false;
  /** Its last words on stderr. */
  lastWords = '';
  /** Logins that were allowed, and until when each may be on its way to a session that `sessions` does not have. */
  readonly #allowed = new Map<string, { login: Login; until: number }>();
  /** Until when there may be such that nobody here has seen. */
  #unseenUntil = 0;
  #lines: Lines<ToProcess> | undefined;
  #lastQuestion = 0;
  readonly #asked = new Map<number, (answer: FromProcess | undefined) => void>();

  constructor(pid: number, isFound = false) {
    this.pid = pid;
    this.isFound = isFound;
    this.startTime = startTimeOf(pid);
  }

  get isConnected(): boolean {
    return this.#lines !== undefined;
  }

  get isAlive(): boolean {
    return this.startTime !== undefined && startTimeOf(this.pid) === this.startTime;
  }

  /** Whether it takes new connections. */
  get isServing(): boolean {
    return this.port !== undefined && !this.draining && this.isConnected;
  }

  /** `loginMs`: what a login takes at most. */
  connected(lines: Lines<ToProcess>, hello: Hello, loginMs: number): void {
    this.#lines?.close();
    if (hello.port !== undefined) this.#unseenUntil = performance.now() + loginMs;
    this.#lines = lines;
    this.hello = hello;
    this.port ??= hello.port;
    this.draining ||= hello.draining;
    this.held = new Set(hello.sessions);
    // What is open comes again, and what was closed meanwhile comes as a record.
    for (const id of this.sessions.keys()) if (!this.held.has(id)) this.sessions.delete(id);
  }

  /** Returns whether it was this connection that the process had. */
  disconnected(lines: Lines<ToProcess>): boolean {
    if (this.#lines !== lines) return false;
    this.#lines = undefined;
    for (const answer of [...this.#asked.values()]) answer(undefined);
    return true;
  }

  send(message: ToProcess): boolean {
    return this.#lines?.send(message) ?? false;
  }

  /** How many of its sessions match. */
  count(filter: SessionFilter): number {
    return [...this.sessions.values()].filter((one) => matches(one, filter)).length;
  }

  /** Keeps in mind that a login may become a session within `loginMs`. */
  decided(decision: Decision, loginMs: number): void {
    const now = performance.now();
    for (const [key, { until }] of this.#allowed) {
      if (until > now) break;
      this.#allowed.delete(key);
    }
    if (!decision.allowed) return;
    const { clusterId, userId, keyId, loginNode } = decision.route;
    const login = { clusterId, userId, keyId, loginNode: `${loginNode.host}:${loginNode.port}` };
    const key = JSON.stringify(login);
    // Behind the others, which end before it.
    this.#allowed.delete(key);
    this.#allowed.set(key, { login, until: now + loginMs });
  }

  /** Whether it may have a session, or a login on its way to one, that matches. */
  mayHave(filter: SessionFilter): boolean {
    const now = performance.now();
    return (
      now < this.#unseenUntil ||
      this.sessions.values().some((session) => matches(session, filter)) ||
      this.#allowed.values().some(({ login, until }) => now < until && matches(login, filter))
    );
  }

  /** Its answer; undefined when it gives none in time. */
  ask(
    message: { type: 'recheck'; filter: SessionFilter } | { type: 'count' },
  ): Promise<FromProcess | undefined> {
    this.#lastQuestion += 1;
    const id = this.#lastQuestion;
    return new Promise((resolve) => {
      const settle = (answer: FromProcess | undefined) => {
        clearTimeout(late);
        this.#asked.delete(id);
        resolve(answer);
      };
      const late = setTimeout(() => settle(undefined), answerMs);
      this.#asked.set(id, settle);
      if (!this.send({ ...message, id })) settle(undefined);
    });
  }

  answered(id: number, answer: FromProcess): void {
    this.#asked.get(id)?.(answer);
  }

  /** Keeps the copy of its sessions. Returns whether the record is new. */
  onRecord(seq: number, event: GatewayEvent): boolean {
    if (event.kind === 'opened') this.sessions.set(event.session.id, event.session);
    else if (event.kind === 'closed') this.sessions.delete(event.session.id);
    const isNew = seq > this.lastRecord;
    this.lastRecord = Math.max(seq, this.lastRecord);
    return isNew;
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (!this.isAlive || !isGatewayProcess(this.pid)) return;
    try {
      process.kill(this.pid, signal);
    } catch {
      // It has just ended.
    }
  }
}

type Login = Pick<Route, 'clusterId' | 'userId' | 'keyId'> & { loginNode: string };

/** A login that is no session yet has no ID, and could get any. */
function matches(session: Login & { id?: string }, filter: SessionFilter): boolean {
  const { id, clusterId, userId, keyId, loginNode } = filter;
  return (
    (id === undefined || session.id === undefined || id === session.id) &&
    (clusterId === undefined || clusterId === session.clusterId) &&
    (userId === undefined || userId === session.userId) &&
    (keyId === undefined || keyId === session.keyId) &&
    (loginNode === undefined || loginNode === session.loginNode)
  );
}
