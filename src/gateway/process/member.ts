/** The service's view of one gateway process: its connection, and a copy of its session list. */
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SshSession } from '../../domain/access/ssh-session.ts';
import { Questions } from '../../lib/questions.ts';
import { type Decision, type Filtered, filteredOf, matches, type SessionFilter } from '../ssh/decision.ts';
import type { GatewayEvent } from '../ssh/events.ts';
import { endByLauncher, launcher } from './launch.ts';
import type { Lines } from './lines.ts';
import { aliveMs, type FromProcess, type Hello, protocolVersion, type ToProcess } from './messages.ts';
import { isGatewayProcess, isOfAnother, type RunDirectory, startTimeOf } from './run-directory.ts';

/** Timeout of a question to a process: how long its caller waits at most. */
const answerMs = 1_000;
/** Timeout of the recheck sent to a process that stalled: it answers when it runs again, else it is asked again after this. */
const reachMs = 10_000;
/** A process that sends nothing for so long counts as stalled. */
const silentMs = 4 * aliveMs;

export class Member {
  readonly pid: number;
  readonly startTime: string | undefined;
  readonly startedAt = performance.now();
  readonly sessions = new Map<string, SshSession>();
  /** IDs of its open sessions, and of those whose records are not delivered yet. */
  held: ReadonlySet<string> = new Set();
  hello: Hello | undefined;
  port: number | undefined;
  draining = false;
  questions = 0;
  lastRecord = 0;
  /** Sequence numbers of records that were received and are not written yet. */
  readonly writing = new Set<number>();
  /** True if it was started before this service: records that it delivers may have been written already. */
  readonly isFound: boolean;
  /** True for a child of this process, which then gets its exit event. */
  isChild = false;
  /** Since when a recheck is unanswered, or the process stalled (in ms since 1970). A new object for each occurrence. */
  unreached: { since: number } | undefined;
  #isReaching = false;
  /** True if the process was stalled at the last check. */
  isSilent = false;
  #heardAt = performance.now();
  lastWords = '';
  /** Logins that were allowed, with the time until which each may still become a session that is not in `sessions` yet. */
  readonly #allowed = new Map<string, { login: Filtered; until: number }>();
  /** Until when there may be logins that this service does not know of: they were allowed before the process connected. */
  #unseenUntil = 0;
  #lines: Lines<ToProcess> | undefined;
  #lastQuestion = 0;
  readonly #questions = new Questions<number, FromProcess>();

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

  /** True if it speaks another protocol version than this service: it gets no welcome, and the service only waits for its end. */
  get isForeign(): boolean {
    return this.hello !== undefined && this.hello.protocol !== protocolVersion;
  }

  get isServing(): boolean {
    return this.port !== undefined && !this.draining && this.isConnected && !this.isSilent;
  }

  /** Notes a sign of life: the process sent something, or may have done so unread. */
  gaveSign(): void {
    this.#heardAt = performance.now();
    this.isSilent = false;
  }

  /** `loginMs`: the longest time that a login takes. */
  connected(lines: Lines<ToProcess>, hello: Hello, loginMs: number): void {
    this.#lines?.close();
    if (hello.port !== undefined) this.#unseenUntil = performance.now() + loginMs;
    this.#lines = lines;
    this.hello = hello;
    this.port ??= hello.port;
    this.draining ||= hello.draining;
    this.held = new Set(hello.sessions);
    // The process sends its open sessions again, and a record for each that was closed meanwhile.
    for (const id of this.sessions.keys()) if (!this.held.has(id)) this.sessions.delete(id);
  }

  /** Returns true if this was the process's current connection, and not one that it has replaced. */
  disconnected(lines: Lines<ToProcess>): boolean {
    if (this.#lines !== lines) return false;
    this.#lines = undefined;
    this.#questions.failAll(new Error('it was cut off'));
    return true;
  }

  send(message: ToProcess): boolean {
    return this.#lines?.send(message) ?? false;
  }

  keepLastWords(stderr: Readable | null): void {
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.lastWords = `${this.lastWords}${text}`.slice(-4_000);
    });
    stderr?.on('error', () => {});
  }

  count(filter: SessionFilter): number {
    return [...this.sessions.values()].filter((one) => matches(one, filter)).length;
  }

  /** Remembers that an allowed login may become a session within `loginMs`. */
  decided(decision: Decision, loginMs: number): void {
    const now = performance.now();
    for (const [key, { until }] of this.#allowed) {
      if (until > now) break;
      this.#allowed.delete(key);
    }
    if (!decision.allowed) return;
    const login = filteredOf(decision.route);
    const key = JSON.stringify(login);
    // Keeps the map in order of `until`: deleting first moves the entry to the end.
    this.#allowed.delete(key);
    this.#allowed.set(key, { login, until: now + loginMs });
  }

  /** True if it may have a matching session, or a matching login that is about to become one. */
  mayHave(filter: SessionFilter): boolean {
    const now = performance.now();
    return (
      now < this.#unseenUntil ||
      // Of a foreign process's sessions only the IDs are known.
      (this.isForeign && this.held.size > 0) ||
      this.sessions.values().some((session) => matches(session, filter)) ||
      this.#allowed.values().some(({ login, until }) => now < until && matches(login, filter))
    );
  }

  /** Has sessions checked again. Returns true for the first of such requests that fails. */
  async recheck(filter: SessionFilter): Promise<boolean> {
    if ((await this.ask({ type: 'recheck', filter })) || !this.isAlive) return false;
    return this.#becomeUnreached();
  }

  /** Returns true if the process is stalled and that was not known before. */
  hasFallenSilent(): boolean {
    this.isSilent = this.isConnected && performance.now() - this.#heardAt > silentMs;
    return this.isSilent && !this.unreached && this.#becomeUnreached();
  }

  #becomeUnreached(): boolean {
    const isFirst = this.unreached === undefined;
    this.unreached = { since: this.unreached?.since ?? Date.now() };
    return isFirst;
  }

  /** After a failed recheck or a stall: has all sessions checked again. Returns true once nothing is outstanding. */
  async reach(): Promise<boolean> {
    const { unreached } = this;
    if (!unreached || this.#isReaching || !this.isConnected) return false;
    this.#isReaching = true;
    const isDone = await this.ask({ type: 'recheck', filter: {} }, reachMs);
    this.#isReaching = false;
    // Another recheck may have failed meanwhile.
    if (!isDone || this.unreached !== unreached) return false;
    this.unreached = undefined;
    return true;
  }

  /** The process's answer; undefined after a timeout. */
  ask(
    message: { type: 'recheck'; filter: SessionFilter } | { type: 'count' },
    timeoutMs = answerMs,
  ): Promise<FromProcess | undefined> {
    this.#lastQuestion += 1;
    const id = this.#lastQuestion;
    const send = () => {
      if (!this.send({ ...message, id })) this.#questions.settle(id, new Error('it is not connected'));
    };
    return this.#questions.ask(id, send, timeoutMs).catch(() => undefined);
  }

  answered(id: number, answer: FromProcess): void {
    this.#questions.settle(id, answer);
  }

  /** Updates the copy of its sessions. Returns whether the record is new. */
  onRecord(seq: number, event: GatewayEvent): boolean {
    if (event.kind === 'opened') this.sessions.set(event.session.id, event.session);
    else if (event.kind === 'closed') this.sessions.delete(event.session.id);
    const isNew = seq > this.lastRecord;
    this.lastRecord = Math.max(seq, this.lastRecord);
    return isNew;
  }

  kill(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): void {
    if (!this.isAlive) return;
    if (launcher !== undefined && isOfAnother(this.pid)) {
      endByLauncher(launcher, this.pid, signal);
      return;
    }
    if (!isGatewayProcess(this.pid)) return;
    try {
      process.kill(this.pid, signal);
    } catch {
      // The process has just ended.
    }
  }
}

const pollMs = 10;
const pauseMs = 1_000;
/** A killed process is gone within this. */
const killMs = 1_000;

/** The list of gateway processes, also kept in a file for a service that starts after a crash of this one. */
export class Members {
  readonly #directory: RunDirectory;
  readonly #byPid = new Map<number, Member>();
  #calledAt = performance.now();

  constructor(directory: RunDirectory) {
    this.#directory = directory;
  }

  get size(): number {
    return this.#byPid.size;
  }

  [Symbol.iterator](): Iterator<Member> {
    // A copy: a member may end while the others are asked.
    return [...this.#byPid.values()][Symbol.iterator]();
  }

  has(member: Member): boolean {
    return this.#byPid.get(member.pid) === member;
  }

  /** The living process of this PID, added if it is not known yet. `isFound`: it was started before this service. */
  found(pid: number, isFound: boolean): Member {
    const known = this.#byPid.get(pid);
    if (known?.isAlive) return known;
    const member = new Member(pid, isFound);
    this.add(member);
    return member;
  }

  add(member: Member): void {
    this.#byPid.set(member.pid, member);
    this.remember();
  }

  delete(member: Member): void {
    this.#byPid.delete(member.pid);
    this.remember();
  }

  /** To be called at short intervals: after a pause of this service itself, messages of the processes are still unread. */
  allowForPause(): void {
    const now = performance.now();
    if (now - this.#calledAt > pauseMs) for (const member of this) member.gaveSign();
    this.#calledAt = now;
  }

  filter(matches: (member: Member) => boolean): Member[] {
    return [...this].filter(matches);
  }

  remember(): void {
    this.#directory.remember(
      [...this].flatMap(({ pid, startTime }) => (startTime === undefined ? [] : [{ pid, startTime }])),
    );
  }

  /** Waits until no matching process lives, for at most `limitMs`. Returns those that still live. */
  async awaitNone(limitMs: number, matches: (member: Member) => boolean = () => true): Promise<Member[]> {
    const left = () => this.filter((member) => member.isAlive && matches(member));
    const end = performance.now() + limitMs;
    while (left().length > 0 && performance.now() < end) await sleep(pollMs);
    return left();
  }

  /** Waits until all have ended; kills those that live after `limitMs`. */
  async awaitEnds(limitMs: number): Promise<void> {
    for (const member of await this.awaitNone(limitMs)) member.kill();
    await this.awaitNone(killMs);
  }
}
