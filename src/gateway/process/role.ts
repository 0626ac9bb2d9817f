/**
 * The gateway process: `andromeda gateway`, a command that only the service runs. It holds connections and sessions,
 * and no database: it asks the service (link.ts) whom to let in, and sends it the records (outgoing.ts).
 *
 * It outlives the service. While the service is stopped, open sessions continue as long as unconfirmed access is
 * tolerated (`confirmGraceMs`; only `unconfirmedMs` where a service runs and confirms nothing), and logins wait: for
 * the login grace, or a few seconds where another server may let people in. File descriptor 3 is the directory with
 * the service's socket; once it is removed the process ends. Descriptor 4, where it exists, is a listening socket
 * shared with another process; 5 and 6 are directories of the program (launch.ts).
 */
import { spawn } from 'node:child_process';
import { fstatSync } from 'node:fs';
import { messageOf } from '../../lib/error-message.ts';
import type { Authorize } from '../ssh/decision.ts';
import { type Gateway, startGateway } from '../ssh/index.ts';
import { defaultLimits } from '../ssh/limits.ts';
import { Link } from './link.ts';
import { aliveMs, type Hello, protocolVersion, type Settings, type ToProcess } from './messages.ts';
import { createRemoteLog, Records, type RemoteLog } from './outgoing.ts';

const directory = 3;
const sharedSocket = 4;
/** Descriptors of the program's directories, where this account cannot reach them by path. */
const program = [5, 6];
const watchMs = 200;
/** A service that crashed is back within this. After it, the idle process frees the address for others. */
const idleMs = 10_000;
/** How long a login waits for a service that is away, where another server may let the person in. */
const loginWaitMs = 5_000;
/** How long a process that ends waits for the service to write its last records. */
const confirmMs = 500;

/** Serves until the service ends it, or is gone for good. Exits the process. */
export function runGatewayProcess([build = '', shared]: readonly string[]): void {
  // The service may be gone, and the reading end of the pipe with it.
  process.stderr.on('error', () => {});
  const ignored = () => {};
  process.on('SIGHUP', ignored).on('SIGUSR1', ignored);
  new GatewayProcess(build, shared === 'shared').start();
}

class GatewayProcess {
  readonly #build: string;
  readonly #isShared: boolean;
  readonly #link: Link;
  readonly #log: RemoteLog;
  readonly #records: Records;
  #settings: Settings | undefined;
  #gateway: Gateway | undefined;
  #starting: Promise<void> | undefined;
  #draining = false;
  #ending = false;

  constructor(build: string, isShared: boolean) {
    this.#build = build;
    this.#isShared = isShared;
    this.#link = new Link({
      path: `/proc/self/fd/${directory}/gateway.sock`,
      hello: () => this.#hello(),
      onWelcome: (settings) => this.#onWelcome(settings),
      onMessage: (message) => this.#onMessage(message),
      onFault: (error) => this.#log.error('gateway.process.fault', { error }),
    });
    this.#log = createRemoteLog(this.#link, (level) => level !== 'debug' || (this.#settings?.debug ?? false));
    this.#records = new Records(this.#link, this.#log);
  }

  start(): void {
    process.on('SIGTERM', () => void this.#stop(confirmMs));
    process.on('SIGINT', () => void this.#stop(confirmMs));
    setInterval(() => this.#watch(), watchMs);
    setInterval(() => void this.#link.send({ type: 'alive' }), aliveMs);
    this.#link.start();
  }

  #hello(): Hello {
    const { listen } = this.#settings ?? {};
    const open = this.#gateway?.sessions() ?? [];
    const untold = [...this.#records.waiting()].flatMap((event) =>
      event.kind === 'refused' ? [] : [event.session.id],
    );
    return {
      type: 'hello',
      protocol: protocolVersion,
      build: this.#build,
      pid: process.pid,
      listen: this.#gateway && listen && `${listen.host}:${listen.port}`,
      port: this.#gateway?.port,
      draining: this.#draining || this.#ending,
      sessions: [...new Set([...open.map(({ id }) => id), ...untold])],
    };
  }

  #configure(settings: Settings): void {
    const isNews = JSON.stringify(settings) !== JSON.stringify(this.#settings);
    this.#settings = settings;
    if (isNews) this.#gateway?.configure(settings);
  }

  #onWelcome(settings: Settings): void {
    this.#configure(settings);
    this.#log.deliver();
    if (this.#gateway) {
      this.#link.send({ type: 'listening', port: this.#gateway.port });
      this.#sendSessions();
    } else this.#starting ??= this.#listen(settings);
    this.#records.deliver();
  }

  async #listen(settings: Settings): Promise<void> {
    try {
      const gateway = await startGateway({
        ...settings,
        listen: this.#isShared ? { fd: sharedSocket } : settings.listen,
        authorize: this.#authorize,
        runningSince: () => this.#link.runningSince,
        log: this.#log,
        record: (event) => this.#records.record(event),
      });
      this.#gateway = gateway;
      this.#link.send({ type: 'listening', port: gateway.port });
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException;
      this.#link.send({ type: 'listenFailed', code, message });
      await this.#end(confirmMs);
    }
  }

  /** A login waits for the service, which may be restarting; a recheck of an open session fails at once, as it is repeated soon. */
  readonly #authorize: Authorize = async (attempt, openOn, gone) => {
    if (!openOn) return this.#link.ask({ type: 'authorize', attempt }, this.#loginGraceMs, gone);
    if (!this.#link.isUp) throw new Error('the service is away');
    const { host, port } = openOn;
    const recheckMs = this.#settings?.limits.recheckMs ?? defaultLimits.recheckMs;
    return this.#link.ask({ type: 'authorize', attempt, openOn: { host, port } }, recheckMs);
  };

  #onMessage(message: ToProcess) {
    const { type } = message;
    if (type === 'configure') this.#configure(message.settings);
    else if (type === 'recorded') this.#records.recorded(message.seq);
    else if (type === 'recheck') void this.#recheck(message);
    else if (type === 'close') this.#gateway?.close(message.filter, message.reason, message.text);
    else if (type === 'count') this.#count(message.id);
    else if (type === 'handOver') this.#handOver(message.command);
    else if (type === 'drain') void this.#drain();
    else if (type === 'stop') void this.#stop(confirmMs);
  }

  #sendSessions(): void {
    for (const session of this.#gateway?.sessions() ?? []) this.#link.send({ type: 'session', session });
  }

  #count(id: number): void {
    this.#sendSessions();
    this.#link.send({ type: 'counted', id });
  }

  async #recheck({ id, filter }: ToProcess & { type: 'recheck' }): Promise<void> {
    // Sends no answer while sessions are in doubt, so that the service asks again.
    const isDone = (await this.#gateway?.recheck(filter)) ?? true;
    if (isDone) this.#link.send({ type: 'rechecked', id });
  }

  /** Starts a process that shares the listening socket: new connections wait in its queue meanwhile, and none is lost. */
  #handOver([file = '', ...args]: readonly string[]) {
    const failed = (error: unknown) =>
      void this.#link.send({ type: 'handOverFailed', message: messageOf(error) });
    if (!this.#gateway || this.#draining || this.#ending) return failed(new Error('it does not listen'));
    // Node gives no other access to the descriptor (test/gateway/process/hand-over.test.ts).
    const socket = (this.#gateway.server as { _handle?: { fd?: number } })._handle?.fd;
    if (socket === undefined) return failed(new Error('its socket has no number'));
    try {
      const inherited = [directory, socket, ...(file.startsWith('/proc/self/fd/') ? program : [])];
      const stdio = ['ignore', 'ignore', 'inherit', ...inherited] as const;
      const child = spawn(file, [...args, 'shared'], { stdio: [...stdio], detached: true });
      child.once('error', failed);
      child.unref();
      if (child.pid !== undefined) this.#link.send({ type: 'handedOver', pid: child.pid });
    } catch (error) {
      failed(error);
    }
  }

  async #drain(): Promise<void> {
    if (this.#draining || this.#ending) return;
    this.#draining = true;
    await this.#gateway?.retire();
    await this.#end(this.#loginGraceMs);
  }

  async #stop(waitMs: number): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    this.#link.send({ type: 'ending' });
    await this.#starting;
    await this.#gateway?.stop();
    await this.#end(waitMs);
  }

  /** Exits, after waiting up to `waitMs` for the service to confirm the remaining records. */
  async #end(waitMs: number): Promise<never> {
    this.#ending = true;
    await this.#records.confirmed(waitMs);
    process.exit(0);
  }

  get #loginGraceMs(): number {
    return this.#settings?.limits.loginGraceMs ?? defaultLimits.loginGraceMs;
  }

  /** Exits when there is nothing left to wait for while the service is away. */
  #watch(): void {
    const { awaySince } = this.#link;
    if (awaySince === undefined || this.#ending) return;
    const isGone = fstatSync(directory).nlink === 0;
    const isIdle = (this.#gateway?.connections ?? 0) === 0;
    const awayMs = performance.now() - awaySince;
    if (this.#settings?.hasOthers && awayMs > loginWaitMs) this.#link.giveUp();
    if (isGone) void this.#stop(0);
    else if (isIdle && awayMs > idleMs) void this.#stop(this.#loginGraceMs);
  }
}
