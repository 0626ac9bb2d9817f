/**
 * One Slurm cluster as the driver sees it: its hosts, scripts run on them, and the last report of each. Hosts themselves
 * record what the driver put there; only the list of hosts that have something of ours is kept here.
 */
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { SlurmReport } from '../../domain/access/manifest.ts';
import type { SlurmSettings } from '../../domain/slurm/settings.ts';
import type { Logger } from '../../lib/log.ts';
import { createQueue } from '../loop/queue.ts';
import { type Gateway, hostRows, type ScriptScope } from './desired.ts';
import { type Facts, type KnownLogins, type ManifestVersion, readFacts } from './facts.ts';
import { createHostRecord, type HostRecord, type LeftHost } from './host-record.ts';
import { type Host, hostsOf, isInFront, type LoginNode, loginNodesOf, nameOf } from './hosts.ts';
import type { SharedKnownHosts } from './known-hosts.ts';
import { type Row, scriptOf } from './script.ts';
import { createShell, HostError, type Shell } from './shell.ts';

export interface SlurmOptions extends ScriptScope {
  name: string;
  gateway: Gateway;
  dataDir: string;
  /** The record of hosts that have something of ours; a file in `dataDir` when left out. */
  record?: HostRecord | undefined;
  /** The last report of the previous process. */
  last?:
    | Pick<SlurmReport, 'waiting' | 'manifestGeneration' | 'desiredGeneration' | 'listVersion'>
    | undefined;
  /** Host keys shared with other servers; left out: they are kept in `dataDir`. */
  knownHosts?: SharedKnownHosts | undefined;
  /** Throws when this server's lease may have ended and another may lead; called before each script that changes something. */
  requireTime?(): void;
  /** Notifies the gateway that a login node (`host:port`) is about to restart. */
  endSessions(loginNode: string): void;
  log: Logger;
}

export interface WaitOptions {
  /** Aborted when a newer state is wanted: all waiting ends. */
  superseded?: AbortSignal | undefined;
  /** Timeout for a host that answered the last time. */
  ms: number;
}

export type HostResult = Facts | HostError;

/** Limit for each of two queues, compute nodes and all other hosts, so that neither waits for the other. */
const maxConcurrentHosts = 32;
const connectSeconds = { usual: 8, failing: 5 };
/** Timeout of a script: a host that takes longer counts as unreachable. */
const scriptLimitMs = { observe: 20_000, change: 300_000 };
/** How long a pass waits for a host: one that failed the last time, and one that answered, by the kind of work. */
const failingPatienceMs = 3_000;
export const patienceMs = { observe: 10_000, apply: 60_000, order: scriptLimitMs.change };
const maxKnownLogins = 8;
/** A report names at most this many waiting hosts. */
export const mostWaiting = 50;

export class SlurmCluster {
  readonly options: SlurmOptions;
  readonly settings: SlurmSettings;
  readonly record: HostRecord;
  readonly results = new Map<string, HostResult>();
  /** By address: the problems of the last change on the host. */
  readonly problems = new Map<string, Facts['problems']>();
  /** The facts of the controller's last report. */
  controllerFacts: Facts | undefined;
  nodes: readonly string[] = [];
  /** By address: the version in force on the host in its last report. */
  readonly confirmed = new Map<string, ManifestVersion>();
  /** The generation of the list that was last applied; 0 before the first. */
  wantedGeneration = 0;
  /** By address: when a change ended, for hosts that were not observed since: the change itself reported their state. */
  readonly #fresh = new Map<string, number>();
  /** By address: number of changes that ended. An observation that began before one of them is outdated. */
  readonly #changes = new Map<string, number>();
  readonly #running = new Map<string, Promise<HostResult>>();
  readonly #closing = new AbortController();
  readonly #knownLogins: KnownLogins = new Map();
  readonly #queues = { front: createQueue(maxConcurrentHosts), compute: createQueue(maxConcurrentHosts) };
  readonly shell: Shell;
  #usernames: readonly string[] | undefined;

  constructor(options: SlurmOptions) {
    this.options = options;
    this.settings = options.settings;
    const directory = join(options.dataDir, 'slurm');
    this.record = options.record ?? createHostRecord(join(directory, 'hosts.json'));
    this.shell = createShell({
      user: this.settings.manage?.user ?? 'root',
      identityFile: this.settings.manage?.identityFile,
      directory,
      knownHosts: options.knownHosts,
    });
    this.#recall();
  }

  /** Restores the versions of hosts from the last report: a host that it does not name as waiting had the version in force. */
  #recall(): void {
    const { last } = this.options;
    if (!last?.waiting || last.waiting.length >= mostWaiting) return;
    const waiting = new Map(last.waiting.map((one) => [one.host, one]));
    for (const host of this.record.left([])) {
      const { generation = 0, listVersion = 0 } = waiting.get(nameOf(host)) ?? {
        generation: last.manifestGeneration,
        listVersion: last.listVersion ?? 0,
      };
      const { desiredGeneration } = last;
      if (generation > 0) this.confirmed.set(host.address, { generation, listVersion, desiredGeneration });
    }
  }

  /** The people who should have an account; before the first `apply`, those who have one on the controller. */
  get usernames(): readonly string[] {
    return this.#usernames ?? this.controllerFacts?.logins ?? [];
  }

  /** Sets the people who should have an account from now on, and the generation of their list. */
  beginApply(usernames: readonly string[], generation: number): void {
    this.#usernames = usernames;
    this.wantedGeneration = generation;
  }

  hosts(): Host[] {
    return hostsOf(this.settings, this);
  }

  loginNodes(): LoginNode[] {
    return loginNodesOf(this.settings, this.usernames);
  }

  /** Recorded hosts that are no longer in use; empty while the hosts in use are not known. */
  leftHosts(): LeftHost[] {
    const isKnown = this.controllerFacts && (this.nodes.length > 0 || !this.settings.compute);
    return isKnown ? this.record.left(this.hosts()) : [];
  }

  factsOf({ address }: Host): Facts | undefined {
    const result = this.results.get(address);
    return result instanceof HostError ? undefined : result;
  }

  /**
   * Works on these hosts in parallel, and waits for each up to its timeout. A host that takes longer, or hangs, goes on in
   * the background, and its report is kept when it comes.
   */
  async onEach<H extends Host>(
    hosts: readonly H[],
    work: (host: H) => Promise<unknown>,
    { superseded, ms }: WaitOptions,
  ): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, ...(superseded ? [superseded] : [])]);
    const begun = hosts.map((host) => {
      const isFailing = this.results.get(host.address) instanceof HostError;
      return Promise.race([
        work(host),
        wait(isFailing ? failingPatienceMs : ms, undefined, { signal }).catch(() => {}),
      ]);
    });
    await Promise.all(begun).finally(() => over.abort());
  }

  /** Resolves when no change is under way on the host. */
  async idle({ address }: Host): Promise<void> {
    await this.#running.get(`change ${address}`)?.catch(() => {});
  }

  /**
   * Runs a script on a host and keeps its report. A host's fault is returned, only an aborted `signal` throws. A host has at
   * most one observation and one change under way: a second observation joins the first, a second change is a fault.
   */
  run(host: Host, action: Action, rows: readonly Row[], signal: AbortSignal): Promise<HostResult> {
    const { address } = host;
    const key = `${action === 'observe' ? 'observe' : 'change'} ${address}`;
    const underWay = this.#running.get(key);
    if (underWay && action === 'observe') return underWay;
    if (underWay)
      return Promise.resolve(new HostError(`${address} still does what it was sent before.`, true));
    const running = this.#run(host, action, rows, AbortSignal.any([signal, this.#closing.signal])).finally(
      () => this.#running.delete(key),
    );
    // The caller may not wait for it any more: a rejection would then be unhandled.
    running.catch(() => {});
    this.#running.set(key, running);
    return running;
  }

  async #run(host: Host, action: Action, rows: readonly Row[], signal: AbortSignal): Promise<HostResult> {
    const { address } = host;
    const isChange = action !== 'observe';
    if (isChange) this.options.requireTime?.();
    this.#fresh.delete(address);
    // Recorded before the script is sent, because a host that does not answer any more may have run it.
    if (action === 'apply') this.record.add(host, this.#ownerOf(host));
    const known = [...this.#knownLogins.keys()].slice(-4).map((digest): Row => ['known', digest]);
    const script = scriptOf([...hostRows(this.options, host, action), ...known, ...rows]);
    const [last, changes] = [this.results.get(address), this.#changes.get(address)];
    const isFailing = last instanceof HostError && last.isUnreachable;
    const limits = {
      connectSeconds: isFailing ? connectSeconds.failing : connectSeconds.usual,
      ms: isChange ? scriptLimitMs.change : scriptLimitMs.observe,
    };
    const queue = isInFront(host) ? this.#queues.front : this.#queues.compute;
    const isOutdated = () => !isChange && this.#changes.get(address) !== changes;
    try {
      const text = await queue(() => this.shell.run(host, script, signal, limits));
      const facts = readFacts(text, this.#knownLogins);
      if (!isOutdated()) this.#keepFacts(host, action, facts);
      return facts;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const fault =
        error instanceof HostError ? error : new HostError(`${address}: ${(error as Error).message}`, true);
      if (last instanceof HostError) fault.inARow = last.inARow + 1;
      if (!isOutdated()) this.results.set(address, fault);
      // Kept apart from results: a later observation may succeed, and must not hide this fault.
      const kind = fault.isUnreachable ? 'unanswered' : 'script';
      if (isChange) this.problems.set(address, [{ kind, message: fault.message }]);
      return fault;
    } finally {
      if (isChange) this.#changes.set(address, (changes ?? 0) + 1);
    }
  }

  /** Whether a change has just ended on the host, so that an observation is not needed; clears the mark. */
  takeFresh({ address }: Host): boolean {
    const since = performance.now() - (this.#fresh.get(address) ?? -Infinity);
    return this.#fresh.delete(address) && since < patienceMs.apply;
  }

  /** Aborts the scripts under way; hosts may go on running them. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running.values());
    await this.shell.close();
  }

  keepOnly(addresses: ReadonlySet<string>): void {
    for (const known of [this.results, this.problems, this.confirmed, this.#changes])
      for (const address of known.keys()) if (!addresses.has(address)) known.delete(address);
  }

  #keepFacts(host: Host, action: Action, facts: Facts): void {
    const { address } = host;
    for (const digest of this.#knownLogins.keys())
      if (this.#knownLogins.size > maxKnownLogins) this.#knownLogins.delete(digest);
    this.results.set(address, facts);
    if (facts.settled) this.confirmed.set(address, facts.settled);
    else this.confirmed.delete(address);
    if (action !== 'observe') this.problems.set(address, facts.problems);
    if (action === 'apply' || action === 'restart') this.#fresh.set(address, performance.now());
    if (!facts.controller) return;
    this.controllerFacts = facts;
    const { machines = [] } = facts.controller;
    const { retired = [] } = this.settings;
    if (machines.length > 0)
      this.nodes = machines.map(({ name }) => name).filter((name) => !retired.includes(name));
  }

  #ownerOf({ address }: Host): string | undefined {
    if (this.settings.loginMode !== 'PerUser') return undefined;
    return this.loginNodes().find((node) => node.address === address)?.username;
  }
}

export type Action = 'observe' | 'apply' | 'restart' | 'release';
