/**
 * One Slurm cluster as the driver sees it: which hosts there are, scripts run on them, and what each reported last. What is
 * ours is noted on the hosts themselves; only the list of hosts that have something of ours is kept here.
 */
import { join } from 'node:path';
import type { SlurmSettings } from '../../../domain/slurm-settings.ts';
import type { Logger } from '../../../lib/log.ts';
import { createQueue } from '../../queue.ts';
import { hostRows, type ScriptScope } from './desired.ts';
import { type Facts, type KnownLogins, readFacts } from './facts.ts';
import { createHostRecord, type HostRecord, type LeftHost } from './host-record.ts';
import { type Host, hostsOf, type LoginNode, loginNodesOf } from './hosts.ts';
import type { SharedKnownHosts } from './known-hosts.ts';
import { type Row, scriptOf } from './script.ts';
import { createShell, HostError, type Shell } from './shell.ts';

export interface SlurmOptions extends ScriptScope {
  name: string;
  /** Where this cluster's files are kept here. */
  dataDir: string;
  /** Where it is kept which hosts have something of ours; in a file there, when left out. */
  record?: HostRecord;
  /** Host keys that are kept with other servers; left out: they are kept here. */
  knownHosts?: SharedKnownHosts | undefined;
  /** Throws where another server may look after the cluster by now; asked before each script that changes something. */
  requireTime?(): void;
  /** Notifies the gateway that a login node (`host:port`) is about to restart. */
  endSessions(loginNode: string): void;
  log: Logger;
}

/** What a host reported, or why it did not. */
export type HostResult = Facts | HostError;

const maxConcurrentHosts = 32;
/** In seconds; many hosts that are unreachable must not keep the others waiting each time. */
const connectTimeout = { usual: 10, unreachable: 3 };
const scriptTimeoutMs = 300_000;
const maxKnownLogins = 8;

export class SlurmCluster {
  readonly options: SlurmOptions;
  readonly settings: SlurmSettings;
  readonly record: HostRecord;
  /** By address. */
  readonly results = new Map<string, HostResult>();
  /** By address: what went wrong there when something was last changed. */
  readonly problems = new Map<string, Facts['problems']>();
  /** What the controller reported when it last answered. */
  controllerFacts: Facts | undefined;
  nodes: readonly string[] = [];
  /** By address, of the scripts of the last `apply`: an observation at the same time may have begun before them. */
  readonly #applied = new Map<string, HostResult>();
  readonly #knownLogins: KnownLogins = new Map();
  readonly #queue = createQueue(maxConcurrentHosts);
  readonly #shell: Shell;
  #usernames: readonly string[] | undefined;

  constructor(options: SlurmOptions) {
    this.options = options;
    this.settings = options.settings;
    const directory = join(options.dataDir, 'slurm');
    this.record = options.record ?? createHostRecord(join(directory, 'hosts.json'));
    this.#shell = createShell({
      user: this.settings.manage?.user ?? 'root',
      identityFile: this.settings.manage?.identityFile,
      directory,
      knownHosts: options.knownHosts,
      timeoutMs: scriptTimeoutMs,
    });
  }

  /** How many scripts were run, which is the number of round trips. */
  get roundTrips(): number {
    return this.#shell.runs;
  }

  /** Who should have an account; before anything was applied, who has one on the controller. */
  get usernames(): readonly string[] {
    return this.#usernames ?? this.controllerFacts?.logins ?? [];
  }

  /** From here on, `resultOf` prefers what the scripts of this `apply` reported. */
  beginApply(usernames: readonly string[]): void {
    this.#applied.clear();
    this.#usernames = usernames;
  }

  /** Every host, the controller first. */
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

  resultOf({ address }: Host): HostResult | undefined {
    return this.#applied.get(address) ?? this.results.get(address);
  }

  /** undefined where the host did not answer. */
  factsOf(host: Host): Facts | undefined {
    const result = this.resultOf(host);
    return result instanceof HostError ? undefined : result;
  }

  /** Runs a script on a host and keeps what it reports. A host's fault is a result as well; only `signal` makes it throw. */
  async run(host: Host, action: Action, rows: readonly Row[], signal: AbortSignal): Promise<HostResult> {
    if (action !== 'observe') this.options.requireTime?.();
    const known = [...this.#knownLogins.keys()].slice(-4).map((digest): Row => ['known', digest]);
    const script = scriptOf([...hostRows(this.options, host, action), ...known, ...rows]);
    const last = this.results.get(host.address);
    const timeout =
      last instanceof HostError && last.isUnreachable ? connectTimeout.unreachable : connectTimeout.usual;
    try {
      const text = await this.#queue(() => this.#shell.run(host, script, signal, timeout));
      const facts = readFacts(text, this.#knownLogins);
      this.#keepFacts(host, action, facts);
      return facts;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const fault =
        error instanceof HostError
          ? error
          : new HostError(`${host.address}: ${(error as Error).message}`, true);
      this.#keepResult(host, action, fault);
      // An observation afterwards may succeed, and must not hide this fault.
      if (action !== 'observe' && !fault.isUnreachable)
        this.problems.set(host.address, [{ kind: 'script', message: fault.message }]);
      return fault;
    }
  }

  #keepFacts(host: Host, action: Action, facts: Facts): void {
    for (const digest of this.#knownLogins.keys())
      if (this.#knownLogins.size > maxKnownLogins) this.#knownLogins.delete(digest);
    this.#keepResult(host, action, facts);
    if (action !== 'observe') this.problems.set(host.address, facts.problems);
    if (action === 'apply') this.record.add(host, this.#ownerOf(host));
    if (!facts.controller) return;
    this.controllerFacts = facts;
    const { machines } = facts.controller;
    if (machines.length > 0) this.nodes = machines.map(({ name }) => name);
  }

  #keepResult({ address }: Host, action: Action, result: HostResult): void {
    this.results.set(address, result);
    if (action !== 'observe') this.#applied.set(address, result);
  }

  /** Whose login node it is, where each person has their own. */
  #ownerOf({ address }: Host): string | undefined {
    if (this.settings.loginMode !== 'PerUser') return undefined;
    return this.loginNodes().find((node) => node.address === address)?.username;
  }
}

/** What a script does: see script/main.ts. */
export type Action = 'observe' | 'apply' | 'restart' | 'release';
