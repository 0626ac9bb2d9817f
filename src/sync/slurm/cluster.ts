/**
 * One Slurm cluster as the driver sees it: which hosts there are, scripts run on them, and what each reported last. What is
 * ours is noted on the hosts themselves; only the list of hosts that have something of ours is kept here.
 */
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { SlurmReport } from '../../domain/access/manifest.ts';
import type { SlurmSettings } from '../../domain/slurm/settings.ts';
import type { Logger } from '../../lib/log.ts';
import { createQueue } from '../loop/queue.ts';
import { hostRows, type ScriptScope } from './desired.ts';
import { type Facts, type KnownLogins, readFacts, type Version } from './facts.ts';
import { createHostRecord, type HostRecord, type LeftHost } from './host-record.ts';
import { type Host, hostsOf, isInFront, type LoginNode, loginNodesOf, nameOf } from './hosts.ts';
import { type Row, scriptOf } from './script.ts';
import { createShell, HostError, type SharedKnownHosts, type Shell } from './shell.ts';

export interface SlurmOptions extends ScriptScope {
  name: string;
  dataDir: string;
  /** Where it is kept which hosts have something of ours; in a file there, when left out. */
  record?: HostRecord | undefined;
  /** What was last reported, by the process before this one. */
  last?:
    | Pick<SlurmReport, 'waiting' | 'manifestGeneration' | 'desiredGeneration' | 'listVersion'>
    | undefined;
  /** Host keys that are kept with other servers; left out: they are kept here. */
  knownHosts?: SharedKnownHosts | undefined;
  /** Throws where another server may look after the cluster by now; asked before each script that changes something. */
  requireTime?(): void;
  /** Notifies the gateway that a login node (`host:port`) is about to restart. */
  endSessions(loginNode: string): void;
  log: Logger;
}

export interface Waiting {
  /** Aborted when something newer is to be done: nothing is waited for any more. */
  superseded?: AbortSignal | undefined;
  /** For a host that answered the last time. */
  ms: number;
}

export type HostResult = Facts | HostError;

/** Of those that people meet first, and of compute nodes: neither waits for the other. */
const maxConcurrentHosts = 32;
const connectSeconds = { usual: 8, failing: 5 };
/** A host that hangs is away when its script has taken so long. */
const scriptLimitMs = { observe: 20_000, change: 300_000 };
/** How long others wait for a host that did not answer the last time; and for one that did, by what it is to do. */
const failingPatienceMs = 3_000;
export const patienceMs = { observe: 10_000, apply: 60_000, order: scriptLimitMs.change };
const maxKnownLogins = 8;
/** So many hosts that wait are named in a report. */
export const mostWaiting = 50;

export class SlurmCluster {
  readonly options: SlurmOptions;
  readonly settings: SlurmSettings;
  readonly record: HostRecord;
  readonly results = new Map<string, HostResult>();
  /** By address: what went wrong there when something was last changed. */
  readonly problems = new Map<string, Facts['problems']>();
  /** What the controller reported when it last answered. */
  controllerFacts: Facts | undefined;
  nodes: readonly string[] = [];
  /** By address: what each host had when it last answered. */
  readonly confirmed = new Map<string, Version>();
  /** The list that was last applied; 0 before the first. */
  wantedGeneration = 0;
  /** By address: when a change ended there, which said what the host is like; of hosts that were not asked since. */
  readonly #fresh = new Map<string, number>();
  /** By address: how many changes have ended there. An observation that began before one says nothing of it. */
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

  /** What hosts had that do not answer since: those that were not named as waiting had what was in force. */
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

  /** Who should have an account; before anything was applied, who has one on the controller. */
  get usernames(): readonly string[] {
    return this.#usernames ?? this.controllerFacts?.logins ?? [];
  }

  /** Who should have an account from here on, and with which list. */
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

  /** Hosts that were in use and are not; none while it is not known which are. */
  leftHosts(): LeftHost[] {
    const isKnown = this.controllerFacts && (this.nodes.length > 0 || !this.settings.compute);
    return isKnown ? this.record.left(this.hosts()) : [];
  }

  factsOf({ address }: Host): Facts | undefined {
    const result = this.results.get(address);
    return result instanceof HostError ? undefined : result;
  }

  /**
   * Does something on each of these hosts at the same time, and waits for as long as a host is worth: one that takes longer, or
   * hangs, goes on by itself, and what it reports counts when it comes.
   */
  async onEach<H extends Host>(
    hosts: readonly H[],
    work: (host: H) => Promise<unknown>,
    { superseded, ms }: Waiting,
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
   * Runs a script on a host and keeps what it reports. A host's fault is a result as well; only `signal` makes it throw. A host
   * has at most one observation and one change under way: a second observation is the first, a second change is a fault.
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
    // The caller may no longer wait for it: then a rejection would be unhandled.
    running.catch(() => {});
    this.#running.set(key, running);
    return running;
  }

  async #run(host: Host, action: Action, rows: readonly Row[], signal: AbortSignal): Promise<HostResult> {
    const { address } = host;
    const isChange = action !== 'observe';
    if (isChange) this.options.requireTime?.();
    this.#fresh.delete(address);
    // Before it is sent: a host that falls silent may have done it.
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
      // An observation afterwards may succeed, and must not hide this fault.
      const kind = fault.isUnreachable ? 'unanswered' : 'script';
      if (isChange) this.problems.set(address, [{ kind, message: fault.message }]);
      return fault;
    } finally {
      if (isChange) this.#changes.set(address, (changes ?? 0) + 1);
    }
  }

  /** Whether a change has just ended there, so that it need not be asked; true once. */
  takeFresh({ address }: Host): boolean {
    const since = performance.now() - (this.#fresh.get(address) ?? -Infinity);
    return this.#fresh.delete(address) && since < patienceMs.apply;
  }

  /** Ends what is under way; hosts may go on with it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running.values());
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
