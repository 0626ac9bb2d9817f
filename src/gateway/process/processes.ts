/** The service's side of gateway processes: starts, replaces and ends them, and accounts for their sessions. */
import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import type { SshSession } from '../../domain/access/ssh-session.ts';
import { ownAccount } from '../../lib/host-ids.ts';
import type { SessionFilter } from '../ssh/decision.ts';
import type { GatewayKeys } from '../ssh/index.ts';
import { defaultLimits } from '../ssh/limits.ts';
import { Connections } from './connections.ts';
import type { Gateways, GatewaysOptions, Unreached } from './gateways.ts';
import { Attempts, findWay, gatewayCommand, launch, launcher, ownBuild, startByLauncher } from './launch.ts';
import type { Lines } from './lines.ts';
import { Member, Members } from './member.ts';
import type { FromProcess, Hello, Settings, ToProcess } from './messages.ts';
import { type Account, findAccount, usualAccount } from './privileges.ts';
import { createReports, loginMs } from './reports.ts';
import { openRunDirectory } from './run-directory.ts';

/** Timeout for the hello of a process from before this start, which is then ended with its sessions. Generous for a busy machine. */
const foundMs = 10_000;
/** Timeout for the start of a process. A busy machine takes its time. */
const startMs = 30_000;
const [checkMs, lastWordsMs] = [200, 20];
/** In addition to the time that sessions are given to end (`drainMs`). */
const stopMs = 1_000;
const stopped = 'the service stops before the gateway listens';

export class GatewayProcesses implements Gateways {
  readonly #options: GatewaysOptions;
  #settings: Settings;
  readonly #build: string;
  readonly #account: Account | undefined;
  readonly #way: ReturnType<typeof findWay>;
  readonly #reports: ReturnType<typeof createReports>;
  readonly #descriptor: number;
  readonly #members: Members;
  readonly #connections: Connections;
  #checks: NodeJS.Timeout | undefined;
  #phase: 'opening' | 'serving' | 'stopping' | 'closed' = 'opening';
  /** A process is starting: no other is started until this time. */
  #startingUntil = 0;
  /** True while systemd is asked for a process whose PID is not known yet. */
  #isAsking = false;
  readonly #attempts = new Attempts();
  #onServing: { resolve(): void; reject(error: unknown): void } | undefined;

  constructor(options: GatewaysOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#build = options.build ?? ownBuild;
    this.#reports = createReports(options);
    const onFault = (error: unknown, pid?: number) =>
      options.log.error('gateway.process.fault', { pid, error });
    const directory = openRunDirectory(options.dataDir, process.getuid?.() === 0, onFault);
    const own = directory.living.map(({ pid }) => pid);
    this.#account = findAccount(options.account, options.dataDir, own);
    this.#way = findWay(this.#account);
    this.#descriptor = directory.descriptor;
    this.#members = new Members(directory);
    for (const { pid } of directory.living) this.#members.found(pid, true);
    this.#connections = new Connections({
      ...{ directory, account: this.#account, onFault },
      onHello: (lines, hello) => this.#onHello(lines, hello),
      onMessage: (member, message) => this.#onMessage(member, message),
      onDisconnected: () => this.#check(),
    });
  }

  async open(): Promise<void> {
    await this.#connections.open();
    const account = this.#account?.name ?? (launcher === undefined ? ownAccount() : usualAccount);
    this.#options.log.info('gateway.process.account', { account });
    process.once('exit', this.#onExit);
    if (this.#members.size === 0) this.#launch();
    else await this.#awaitHellos();
    this.#checks = setInterval(() => this.#check(), checkMs).unref();
  }

  get held(): ReadonlySet<string> {
    return new Set([...this.#members].flatMap(({ held }) => [...held]));
  }

  async start(): Promise<void> {
    if (this.#phase === 'stopping') throw new Error(stopped);
    const serving = new Promise<void>((resolve, reject) => {
      this.#onServing = { resolve, reject };
    });
    this.#phase = 'serving';
    for (const member of this.#members) if (member.isConnected) this.#greet(member);
    this.#ensure();
    const late = setTimeout(() => {
      this.#onServing?.reject(new Error(`no gateway process was ready within ${startMs} ms`));
    }, startMs);
    await serving.finally(() => {
      clearTimeout(late);
      this.#onServing = undefined;
    });
  }

  get fault(): string | undefined {
    if ([...this.#members].some(({ isServing }) => isServing)) return undefined;
    const silent = [...this.#members].find(({ isSilent, draining }) => isSilent && !draining);
    return silent ? `process ${silent.pid} does not answer` : (this.#attempts.fault ?? 'it is starting');
  }

  useKeys(keys: GatewayKeys): void {
    const before = this.#settings;
    this.#settings = { ...before, ...keys };
    if (isDeepStrictEqual(this.#settings, before)) return;
    for (const member of this.#members)
      if (this.#isWelcome(member)) member.send({ type: 'configure', settings: this.#settings });
  }

  async recheck(filter: SessionFilter = {}): Promise<void> {
    // Most changes concern no person who is logged in, and each message wakes a process.
    const concerned = this.#members.filter((member) => member.mayHave(filter));
    const recheck = async (member: Member) => (await member.recheck(filter)) && this.#onUnreached(member);
    await Promise.all(concerned.map(recheck));
  }

  /** A process without a welcome, or of another protocol version, answers nothing. */
  #isWelcome({ hello, isForeign }: Member): boolean {
    return this.#phase === 'serving' && hello !== undefined && !isForeign;
  }

  #onUnreached({ pid, sessions }: Member): void {
    this.#options.log.error('gateway.process.unreached', { pid, sessions: sessions.size });
  }

  get unreached(): readonly Unreached[] {
    return [...this.#members].flatMap(({ pid, unreached, sessions }) =>
      unreached ? [{ pid, since: unreached.since, sessions: sessions.size }] : [],
    );
  }

  close(filter: SessionFilter, reason: string, text: string): number {
    const sent = this.#members.filter((member) => member.send({ type: 'close', filter, reason, text }));
    return sent.reduce((sum, member) => sum + member.count(filter), 0);
  }

  async sessions(): Promise<readonly SshSession[]> {
    await Promise.all([...this.#members].map((member) => member.ask({ type: 'count' })));
    return [...this.#members].flatMap(({ sessions }) => [...sessions.values()]);
  }

  count(): number {
    return [...this.#members].reduce((sum, { sessions }) => sum + sessions.size, 0);
  }

  async stop(): Promise<void> {
    this.#phase = 'stopping';
    this.#onServing?.reject(new Error(stopped));
    for (const member of this.#members) if (!member.send({ type: 'stop' })) member.kill();
    await this.#members.awaitEnds(stopMsOf(this.#settings));
    for (const member of this.#members) this.#onEnded(member, {});
    await this.#close();
    process.off('exit', this.#onExit);
  }

  async endLeft(): Promise<void> {
    for (const member of this.#members) member.kill('SIGTERM');
    await this.#members.awaitEnds(stopMsOf(this.#settings));
  }

  async leave(which: 'all' | 'found'): Promise<void> {
    this.#phase = 'stopping';
    this.#onServing?.reject(new Error(stopped));
    for (const member of this.#members.filter(({ isFound }) => which === 'found' && !isFound)) {
      member.kill();
      this.#members.delete(member);
    }
    process.off('exit', this.#onExit);
    await this.#close();
  }

  async #close(): Promise<void> {
    clearInterval(this.#checks);
    await this.#connections.close();
    for (const one of [this.#descriptor, ...this.#way.descriptors]) closeSync(one);
    this.#phase = 'closed';
  }

  /** Kills the gateway processes if the service exits while it starts or stops: no other process knows of them then. */
  readonly #onExit = (): void => {
    if (this.#phase === 'serving' && !this.#onServing) return;
    for (const member of this.#members) member.kill();
  };

  async #awaitHellos(): Promise<void> {
    for (const member of await this.#members.awaitNone(foundMs, ({ hello }) => hello === undefined)) {
      this.#options.log.warn('gateway.process.silent', { pid: member.pid });
      member.kill();
    }
  }

  #onHello(lines: Lines<ToProcess>, hello: Hello): Member {
    const member = this.#members.found(hello.pid, true);
    member.connected(lines, hello, loginMs(this.#settings));
    if (this.#phase === 'serving') this.#greet(member);
    if (this.#phase === 'stopping') member.send({ type: 'stop' });
    return member;
  }

  /** Lets a process that said hello serve; one that no longer can keeps its sessions until they end. */
  #greet(member: Member): void {
    const { log } = this.#options;
    const settings = this.#settings;
    const { hello } = member;
    if (!hello) return;
    // Before its welcome a process sends nothing but its hello.
    member.gaveSign();
    if (hello.port !== undefined)
      log.info('gateway.process.found', { pid: member.pid, sessions: hello.sessions.length });
    if (!member.isForeign) member.send({ type: 'welcome', settings });
    else
      log.error('gateway.process.foreign', {
        pid: member.pid,
        protocol: hello.protocol,
        sessions: hello.sessions.length,
      });
    const { host, port } = settings.listen;
    if ((hello.listen ?? `${host}:${port}`) !== `${host}:${port}` || member.isForeign) this.#drain(member);
  }

  #drain(member: Member): void {
    if (member.draining) return;
    member.draining = true;
    member.send({ type: 'drain' });
    this.#options.log.info('gateway.process.draining', { pid: member.pid, sessions: member.sessions.size });
  }

  #onMessage(member: Member, message: FromProcess) {
    const { type } = message;
    member.gaveSign();
    if (type === 'session') member.sessions.set(message.session.id, message.session);
    else if (type === 'listening') this.#onListening(member, message.port);
    else if (type === 'listenFailed') this.#onListenFailed(member, message);
    else if (type === 'authorize') this.#reports.authorize(member, message);
    else if (type === 'record') this.#reports.record(member, message);
    else if (type === 'log') this.#reports.log(member, message);
    else if (type === 'rechecked' || type === 'counted') member.answered(message.id, message);
    else if (type === 'ending') member.draining = true;
    else if (type === 'handedOver') this.#members.found(message.pid, false);
    else if (type === 'handOverFailed') this.#failed(new Error(message.message));
  }

  #onListening(member: Member, port: number) {
    if (this.#isOfToday(member)) this.#startingUntil = 0;
    member.port = port;
    if (member.isServing) {
      this.#attempts.fault = undefined;
      this.#onServing?.resolve();
    }
    this.#ensure();
  }

  #onListenFailed(member: Member, { code, message }: { code: string; message: string }) {
    member.draining = true;
    this.#startingUntil = 0;
    const error = Object.assign(new Error(message), { code });
    if (![...this.#members].some(({ isFound, isAlive }) => isFound && isAlive)) return this.#failed(error);
    // A process from before may still hold the address. Its sessions outlive this start: `fault` says what is wrong.
    if (this.held.size > 0) this.#onServing?.resolve();
    this.#retryLater(error);
  }

  /** True for a process that runs this build and speaks this protocol version. */
  #isOfToday({ hello, isForeign }: Member): boolean {
    return hello === undefined || (hello.build === this.#build && !isForeign);
  }

  /** Adjusts the number of processes to the configured one, one at a time. */
  #ensure() {
    if (this.#phase !== 'serving') return;
    const { processes } = this.#options;
    const members = this.#members.filter(({ draining }) => !draining);
    const ours = members.filter((member) => this.#isOfToday(member));
    const serving = ours.filter(({ isServing }) => isServing);
    for (const extra of serving.slice(processes)) this.#drain(extra);
    if (serving.length >= processes) {
      for (const old of members.filter((member) => !this.#isOfToday(member))) this.#drain(old);
      return;
    }
    const now = performance.now();
    if (ours.length >= processes || now < this.#startingUntil || !this.#attempts.isDue) return;
    // A process that is still starting may be about to bind the address.
    if (ours.length > serving.length) return;
    const from = members.find(({ isServing }) => isServing);
    if (!from) return this.#launch();
    this.#startingUntil = now + startMs;
    from.send({ type: 'handOver', command: gatewayCommand(this.#build, this.#way) });
  }

  #launch() {
    this.#startingUntil = performance.now() + startMs;
    if (launcher === undefined) return this.#launchChild();
    void this.#launchByLauncher(launcher).catch((error) => this.#failed(error));
  }

  async #launchByLauncher(path: string): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { pid, stderr } = await startByLauncher(path, this.#build, startMs).finally(() => {
      this.#isAsking = false;
    });
    if (this.#phase === 'stopping') return;
    // The process may have said hello already. Its end is noticed by polling, as with those from before.
    this.#started(this.#members.found(pid, false), stderr);
  }

  #launchChild() {
    let child: ChildProcess;
    try {
      child = launch({
        build: this.#build,
        directory: this.#descriptor,
        account: this.#account,
        way: this.#way,
        port: this.#settings.listen.port,
      });
    } catch (error) {
      return this.#failed(error);
    }
    child.once('error', (error) => this.#failed(error));
    if (child.pid === undefined) return;
    const member = new Member(child.pid);
    member.isChild = true;
    this.#members.add(member);
    this.#started(member, child.stderr);
    // Waits a moment for its last output and messages to be read: a process that ended by itself sent the reason.
    const judge = (code: number | null, signal: string | null, tries = 20) => {
      const isUnheard = member.isConnected || (code === 0 && !member.hello);
      if (!isUnheard || tries === 0) this.#onEnded(member, { code, signal });
      else setTimeout(judge, lastWordsMs, code, signal, tries - 1);
    };
    child.once('exit', (code, signal) => setTimeout(judge, lastWordsMs, code, signal));
  }

  #started(member: Member, stderr: Readable | null) {
    member.keepLastWords(stderr);
    this.#options.log.info('gateway.process.started', { pid: member.pid });
  }

  #onEnded(member: Member, how: { code?: number | null; signal?: string | null }) {
    // After a hand-over, the next service keeps the list of processes.
    if (this.#phase === 'closed' || !this.#members.has(member)) return;
    this.#members.delete(member);
    const { pid, sessions, draining, lastWords, isFound } = member;
    const isExpected = draining || this.#phase === 'stopping';
    // A process from before that was just ending does not make this start fail.
    const wasEnding = isFound && this.#onServing !== undefined;
    const isPlanned = (isExpected || wasEnding || how.code === 0) && sessions.size === 0;
    const fields = { pid, ...how, sessions: sessions.size, lastWords: lastWords.trim() || undefined };
    this.#options.log[isPlanned ? 'info' : 'error']('gateway.process.ended', fields);
    this.#reports.ended(sessions.values());
    if (isExpected) return;
    this.#startingUntil = 0;
    if (wasEnding) return this.#ensure();
    const words = lastWords.trim() || `it ended with ${how.signal ?? `status ${how.code}`}`;
    const error = new Error(`the gateway process ended: ${words}`);
    this.#attempts.failed(error, member.port === undefined ? 0 : performance.now() - member.startedAt);
    if (this.#onServing) return this.#onServing.reject(error);
    this.#ensure();
  }

  #failed(error: unknown) {
    this.#startingUntil = 0;
    if (this.#onServing) this.#onServing.reject(error);
    else this.#retryLater(error);
  }

  #retryLater(error: unknown) {
    this.#options.log.error('gateway.process.failed', { error, ...this.#attempts.failed(error) });
  }

  /** Polls for ends that raise no event: those of processes that others started. */
  #check(): void {
    for (const member of this.#members) if (!member.isChild && !member.isAlive) this.#onEnded(member, {});
    this.#members.allowForPause();
    for (const member of this.#members) {
      if (this.#isWelcome(member) && member.hasFallenSilent()) this.#onUnreached(member);
      void member.reach().then((isNews) => {
        if (isNews) this.#options.log.info('gateway.process.reached', { pid: member.pid });
      });
    }
    this.#members.remember();
    this.#ensure();
  }
}

const stopMsOf = ({ limits }: Settings) => (limits.drainMs ?? defaultLimits.drainMs) + stopMs;
