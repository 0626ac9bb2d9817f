/** The worker of one side of one cluster: schedules its passes, backs off after failures, and holds its driver. */
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, type Side, sidesOf } from '../../domain/clusters/cluster.ts';
import type { SidePasses } from '../../domain/installation-state.ts';
import { messageOf } from '../../lib/error-message.ts';
import { retryDelay } from '../../lib/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { listReleased } from '../../store/access/adopted-accounts.ts';
import { isCleanedUp, recordCleanup } from '../../store/clusters/cluster-sides.ts';
import { completeRelease, findCluster, recordCleanupFailure } from '../../store/clusters/clusters.ts';
import { deleteObservedAccounts } from '../../store/clusters/observations.ts';
import type { Tx } from '../../store/engine/index.ts';
import type { KubernetesDriver, SlurmDriver } from '../driver.ts';
import { atMost, isStopping, type Pass, type PassDeps, type PassResult } from './pass.ts';

class DriverHolder<D extends SlurmDriver | KubernetesDriver> {
  readonly #create: (cluster: Cluster) => Promise<D>;
  #held: { driver: D; cluster: Cluster } | undefined;

  constructor(create: (cluster: Cluster) => Promise<D>) {
    this.#create = create;
  }

  get driver(): D | undefined {
    return this.#held?.driver;
  }

  /** Returns the driver for the cluster's present settings; closes one for earlier settings first. */
  async open(cluster: Cluster): Promise<D> {
    if (this.#held && isOutdated(this.#held.driver, this.#held.cluster, cluster)) await this.close();
    this.#held ??= { cluster, driver: await this.#create(cluster) };
    return this.#held.driver;
  }

  async close(): Promise<void> {
    const before = this.#held;
    this.#held = undefined;
    await before?.driver.close();
  }
}

function isOutdated(driver: SlurmDriver | KubernetesDriver, before: Cluster, after: Cluster): boolean {
  const kinds = (cluster: Cluster) => Object.keys(cluster.driver).join();
  if (before.name !== after.name || before.scheduler !== after.scheduler) return true;
  return driver.followsSettings
    ? kinds(before) !== kinds(after)
    : !isDeepStrictEqual(before.driver, after.driver);
}

const releaseLimitMs = 3_600_000;

/**
 * Releases a side. Returns false when that was done before. Throws when something is left, and stores the message for
 * operators. Idempotent.
 */
async function releaseSide(
  { store, recheckSessions }: PassDeps,
  cluster: Cluster,
  side: Side,
  openDriver: (cluster: Cluster) => Promise<SlurmDriver | KubernetesDriver>,
  signal: AbortSignal,
): Promise<boolean> {
  if (await isCleanedUp(store.read, cluster.id, side)) return false;
  const keep = async (tx: Tx, cleanup: string) => {
    const whole = await recordCleanup(tx, cluster, side, cleanup);
    if (whole === 'done') await completeRelease(tx, cluster.id);
    else await recordCleanupFailure(tx, cluster.id, whole);
  };
  try {
    const driver = await openDriver(cluster);
    if (side === 'slurm') await recheckSessions?.(cluster.id);
    await driver.release(atMost(signal, releaseLimitMs), await listReleased(store.read, cluster.id));
  } catch (error) {
    if (!isStopping(signal)) await store.write((tx) => keep(tx, messageOf(error)));
    throw error;
  }
  if (side === 'slurm') await deleteObservedAccounts(store, cluster.id);
  await store.write((tx) => keep(tx, 'done'));
  return true;
}

export interface WorkerOptions<D extends SlurmDriver | KubernetesDriver> {
  clusterId: string;
  side: Side;
  deps: PassDeps;
  pass: Pass<D>;
  /** Called when a driver is first needed, and again after a change of settings that the driver does not follow. */
  createDriver(cluster: Cluster): Promise<D>;
  log: Logger;
  onEnd(): void;
  againMs?: number | undefined;
  onPassed?(state: SidePasses): void;
}

export interface Worker {
  readonly state: SidePasses;
  /**
   * Something changed, by a command if one is given: runs a pass soon. The back-off of a side that cannot be reached stays,
   * however many changes come.
   */
  nudge(commandId?: string): void;
  /** The cluster itself reported a change, or answers again: runs a pass at once, even during a back-off. */
  wake(): void;
  stop(): Promise<void>;
}

export function startWorker<D extends SlurmDriver | KubernetesDriver>(options: WorkerOptions<D>): Worker {
  const worker = new SideWorker(options);
  worker.begin();
  return worker;
}

interface PendingChange {
  since: number;
  commands: readonly string[];
}

const mostCommands = 16;

class SideWorker<D extends SlurmDriver | KubernetesDriver> implements Worker {
  readonly #options: WorkerOptions<D>;
  readonly #stopping = new AbortController();
  readonly #holder: DriverHolder<D>;
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** A change came since the pass under way began; `urgent`: the cluster itself reported it. */
  #dirty: false | 'changed' | 'urgent' = false;
  /** Aborted when something changes during the pass under way. */
  #superseded = new AbortController();
  /** A pass is scheduled for a change and will include the changes that come before it begins. */
  #isGathering = false;
  #waiting: PendingChange | undefined = { since: performance.now(), commands: [] };
  #failures = 0;
  /** The last pass could not reach the side: changes do not shorten the back-off. */
  #isDown = false;
  #failingSince: number | undefined;
  #nextAt: number | undefined;
  #lastFailure: string | null = null;
  #name: string;

  constructor(options: WorkerOptions<D>) {
    this.#options = options;
    this.#holder = new DriverHolder(options.createDriver);
    this.#name = options.clusterId;
  }

  get state(): SidePasses {
    return { nextAt: this.#nextAt, failures: this.#failures, failingSince: this.#failingSince };
  }

  nudge(commandId?: string): void {
    this.#dirty ||= 'changed';
    this.#superseded.abort();
    if (!this.#waiting) {
      const { log, side } = this.#options;
      log.debug('sync.changed', { cluster: this.#name, side });
    }
    this.#wait({ since: performance.now(), commands: commandId === undefined ? [] : [commandId] });
    if (!this.#isDown) this.#gather();
  }

  wake(): void {
    this.#dirty = 'urgent';
    this.#gather();
  }

  begin(): void {
    const { againMs } = this.#options;
    if (againMs !== undefined) this.#again = setTimeout(() => this.wake(), againMs).unref();
    this.schedule(0);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
    await this.#running;
    await this.#holder.close();
    const { log, side } = this.#options;
    log.debug('sync.left', { cluster: this.#name, side });
  }

  schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    if (this.#stopping.signal.aborted) return;
    this.#nextAt = this.#options.deps.now() + delayMs;
    this.#timer = setTimeout(() => this.#run(), delayMs);
  }

  #gather(): void {
    if (this.#running || this.#isGathering) return;
    this.#isGathering = true;
    this.schedule(this.#gatherMs());
  }

  #gatherMs(): number {
    return this.#holder.driver?.gatherMs ?? 0;
  }

  #run(): void {
    if (this.#running) return;
    this.#dirty = false;
    this.#superseded = new AbortController();
    this.#isGathering = false;
    this.#nextAt = undefined;
    this.#running = this.#pass().then((delayMs) => {
      this.#running = undefined;
      if (delayMs === undefined) return;
      // Checked only now, because a change between the end of the pass and this line would otherwise wait for an interval.
      const isDue = this.#dirty === 'urgent' || (this.#dirty === 'changed' && !this.#isDown);
      this.schedule(isDue ? this.#gatherMs() : delayMs);
      this.#options.onPassed?.(this.state);
    });
  }

  /** Runs one pass and returns how long to wait before the next; undefined when there is none. */
  async #pass(): Promise<number | undefined> {
    const started = performance.now();
    const changed = this.#waiting;
    this.#waiting = undefined;
    try {
      const result = await this.#passOrRelease();
      if (!result) {
        clearTimeout(this.#again);
        await this.#holder.close();
        this.#options.onEnd();
        return undefined;
      }
      this.#isDown = false;
      // A change that is not in force yet keeps waiting.
      const isOvertaken = result === 'overtaken';
      if (isOvertaken || !result.inForce) this.#wait(changed ?? { since: started, commands: [] });
      if (isOvertaken) return 0;
      this.#logResult(result, started, changed);
      this.#failures = result.retry ? this.#failures + 1 : 0;
      this.#noteFailing(result.failure !== null);
      const nextMs = this.#untilWake(result.wakeAt);
      return result.retry ? Math.min(nextMs, this.#retryMs()) : nextMs;
    } catch (error) {
      this.#failures += 1;
      this.#isDown = true;
      this.#noteFailing(true);
      if (changed) this.#wait(changed);
      const retryMs = this.#retryMs();
      if (!this.#stopping.signal.aborted) {
        const failures = this.#failures;
        this.#options.log.warn('sync.failed', {
          ...this.#about(changed),
          error,
          failures,
          retryMs,
          ms: msSince(started),
          behindMs: this.#behindMs(),
        });
      }
      return retryMs;
    }
  }

  #noteFailing(isFailing: boolean): void {
    this.#failingSince = isFailing ? (this.#failingSince ?? this.#options.deps.now()) : undefined;
  }

  #wait({ since, commands }: PendingChange): void {
    const waiting = this.#waiting ?? { since, commands: [] };
    this.#waiting = {
      since: Math.min(since, waiting.since),
      commands: [...new Set([...commands, ...waiting.commands])].slice(0, mostCommands),
    };
  }

  #behindMs(): number {
    return this.#waiting ? Math.max(1, msSince(this.#waiting.since)) : 0;
  }

  /** Fields of all log lines about a pass, to find them together with those of its commands and of logins. */
  #about(changed: PendingChange | undefined) {
    const { clusterId, side } = this.#options;
    const commands = changed?.commands.length ? { commands: changed.commands } : {};
    return { cluster: this.#name, clusterId, side, ...commands };
  }

  #logResult(result: PassResult, started: number, changed: PendingChange | undefined): void {
    const { log } = this.#options;
    const about = this.#about(changed);
    const { applied, activated, generation, failure } = result;
    log.debug('sync.passed', { ...about, ms: msSince(started), behindMs: this.#behindMs() });
    if (failure !== this.#lastFailure && failure !== null) log.warn('sync.refused', { ...about, failure });
    this.#lastFailure = failure;
    if (!applied && !activated) return;
    log.info('sync.applied', { ...about, generation, applied, activated, ms: msSince(started) });
    if (changed) log.debug('sync.converged', { ...about, ms: msSince(changed.since) });
  }

  /** Returns undefined when the side is released or no longer belongs to the cluster. */
  async #passOrRelease(): Promise<PassResult | 'overtaken' | undefined> {
    const { clusterId, side, deps, pass, log } = this.#options;
    const open = (one: Cluster) => this.#holder.open(one);
    const cluster = await findCluster(deps.store.read, clusterId);
    if (!cluster) throw new Error(`cluster ${clusterId} is gone from the database`);
    this.#name = cluster.name;
    if (cluster.state === 'released' || !sidesOf(cluster).includes(side)) return undefined;
    if (cluster.state !== 'releasing')
      return pass(deps, cluster, open, this.#stopping.signal, this.#superseded.signal);
    const isNews = await releaseSide(deps, cluster, side, open, this.#stopping.signal);
    if (isNews) log.info('sync.released', { cluster: this.#name, side });
    return undefined;
  }

  #retryMs(): number {
    return retryDelay(this.#failures, Math.random(), this.#options.deps.intervalMs);
  }

  /** Delay to the next pass: an interval, or less if a grant ends earlier. Jitter spreads workers that started together. */
  #untilWake(wakeAt: number | undefined): number {
    const { intervalMs, now } = this.#options.deps;
    const nextMs = Math.round(intervalMs * (1 - Math.random() / 5));
    return wakeAt === undefined ? nextMs : Math.max(0, Math.min(nextMs, wakeAt - now()));
  }
}

function msSince(then: number): number {
  return Math.round(performance.now() - then);
}
