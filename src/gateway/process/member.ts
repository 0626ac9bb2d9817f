/** One gateway process, as the service knows it: its connection, and a copy of which sessions it has. */
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

/** How long a caller waits at most for the answer of a process. */
const answerMs = 1_000;
/** A process that stood still answers when it goes on; it is asked again when this is over. */
const reachMs = 10_000;
/** A process of which nothing comes for so long stands still. */
const silentMs = 4 * aliveMs;

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
  questions = 0;
  lastRecord = 0;
  /** Records that came and are not written yet, by number. */
  readonly writing = new Set<number>();
  /** Whether it lived before this service did: what it delivers may have been written already. */
  readonly isFound: boolean;
  /** Whether it is a child of this process, which then sees its exit. */
  isChild = false;
  /** Since when it has left a recheck unanswered, or stood still (in ms since 1970). A new object for each time. */
  unreached: { since: number } | undefined;
  #isReaching = false;
  /** Whether it stood still when that was last looked at. */
  isSilent = false;
  #heardAt = performance.now();
  lastWords = '';
  /** Logins that were allowed, and until when each may be on its way to a session that `sessions` does not have. */
  readonly #allowed = new Map<string, { login: Filtered; until: number }>();
  /** Until when there may be such logins that this service does not know of: they were allowed before it was connected. */
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

  /** Whether it speaks another version than this service, so that it is not welcome and only its end is waited for. */
  get isForeign(): boolean {
    return this.hello !== undefined && this.hello.protocol !== protocolVersion;
  }

  get isServing(): boolean {
    return this.port !== undefined && !this.draining && this.isConnected && !this.isSilent;
  }

  /** It sent something, or may have done so unnoticed. */
  gaveSign(): void {
    this.#heardAt = performance.now();
    this.isSilent = false;
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

  /** Keeps in mind that a login may become a session within `loginMs`. */
  decided(decision: Decision, loginMs: number): void {
    const now = performance.now();
    for (const [key, { until }] of this.#allowed) {
      if (until > now) break;
      this.#allowed.delete(key);
    }
    if (!decision.allowed) return;
    const login = filteredOf(decision.route);
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
      // Of these only the IDs are known.
      (this.isForeign && this.held.size > 0) ||
      this.sessions.values().some((session) => matches(session, filter)) ||
      this.#allowed.values().some(({ login, until }) => now < until && matches(login, filter))
    );
  }

  /** Has sessions checked again. Returns whether it was the first of such requests to fail. */
  async recheck(filter: SessionFilter): Promise<boolean> {
    if ((await this.ask({ type: 'recheck', filter })) || !this.isAlive) return false;
    return this.#becomeUnreached();
  }

  /** Whether it stands still, which was not known. */
  hasFallenSilent(): boolean {
    this.isSilent = this.isConnected && performance.now() - this.#heardAt > silentMs;
    return this.isSilent && !this.unreached && this.#becomeUnreached();
  }

  #becomeUnreached(): boolean {
    const isFirst = this.unreached === undefined;
    this.unreached = { since: this.unreached?.since ?? Date.now() };
    return isFirst;
  }

  /** Where a recheck failed, or the process stood still: has all sessions checked again. Returns whether none is left to be made up for now. */
  async reach(): Promise<boolean> {
    const { unreached } = this;
    if (!unreached || this.#isReaching || !this.isConnected) return false;
    this.#isReaching = true;
    const isDone = await this.ask({ type: 'recheck', filter: {} }, reachMs);
    this.#isReaching = false;
    // Another one may have failed meanwhile.
    if (!isDone || this.unreached !== unreached) return false;
    this.unreached = undefined;
    return true;
  }

  /** Its answer; undefined when it gives none in time. */
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

  /** Keeps the copy of its sessions. Returns whether the record is new. */
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
      // It has just ended.
    }
  }
}

const pollMs = 10;
const pauseMs = 1_000;
/** A process that was killed is gone within this. */
const killMs = 1_000;

/** The gateway processes that there are, written down for a service that starts after one that was cut off. */
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

  /** The living process of this PID, added if it is not known yet. `isFound`: it lived before this service did. */
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

  /** To be called at short intervals: after a pause of this service itself, what came meanwhile is yet to be read. */
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

  /** Waits until none of those that match lives, for at most `limitMs`. Returns those that do. */
  async awaitNone(limitMs: number, matches: (member: Member) => boolean = () => true): Promise<Member[]> {
    const left = () => this.filter((member) => member.isAlive && matches(member));
    const end = performance.now() + limitMs;
    while (left().length > 0 && performance.now() < end) await sleep(pollMs);
    return left();
  }

  /** Waits until all have ended; those that live after `limitMs` are killed. */
  async awaitEnds(limitMs: number): Promise<void> {
    for (const member of await this.awaitNone(limitMs)) member.kill();
    await this.awaitNone(killMs);
  }
}
