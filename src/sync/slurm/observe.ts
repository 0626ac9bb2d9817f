/** Observes the hosts of a cluster, controller first, and combines the results into its report. */
import type { GpuDay, SlurmReport } from '../../domain/access/manifest.ts';
import { boundsOf, lastDays, mostGpuDays } from '../../domain/clusters/gpu-hours.ts';
import { sshPort } from '../../domain/slurm/hop.ts';
import { readBanner } from '../../lib/ssh-banner.ts';
import { patienceMs, type SlurmCluster } from './cluster.ts';
import type { Facts } from './facts.ts';
import { type Host, isInFront } from './hosts.ts';
import { findLeftHosts, maxLeftHostsAtOnce } from './left-hosts.ts';
import type { Progress } from './progress.ts';
import { reportOf } from './report.ts';
import type { Row } from './script.ts';
import { HostError } from './shell.ts';

/** Interval at which a day that may still change is queried again. */
const everyMs = 600_000;
/** A day is final once it was queried this long after its end. */
const settlesAfterMs = 3_600_000;

/** Chooses the days of GPU time to query from Slurm's accounting: one in each observation, so that a slow query delays little. */
export class GpuDays {
  readonly #asked = new Map<string, number>();
  readonly #settled = new Set<string>();
  #found: GpuDay[] = [];

  /** The row for the day that is due: today before yesterday, and so on back; none when no day is due. */
  rows(now: number): Row[] {
    const days = lastDays(now, mostGpuDays);
    const due = days.find(
      (day) => !this.#settled.has(day) && now - (this.#asked.get(day) ?? -Infinity) >= everyMs,
    );
    if (due === undefined) return [];
    this.#asked.set(due, now);
    const { from, to } = boundsOf(due);
    return [['gpu-day', due, from / 1_000, Math.floor(Math.min(to, now) / 1_000)]];
  }

  read({ controller }: Facts, now: number): void {
    for (const day of controller?.accounting?.gpuDays ?? []) {
      this.#found.push(day);
      const askedAt = this.#asked.get(day.day) ?? now;
      if (askedAt >= boundsOf(day.day).to + settlesAfterMs) this.#settled.add(day.day);
    }
    for (const known of [this.#asked, this.#settled])
      for (const day of known.keys())
        if (boundsOf(day).to < now - mostGpuDays * 86_400_000) known.delete(day);
  }

  take(): GpuDay[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }
}

const bannerMs = 3_000;

type StateEvent = 'slurm.fault' | 'slurm.drifted' | 'slurm.left' | 'slurm.noticed';

export class Observer {
  readonly #cluster: SlurmCluster;
  readonly #progress: Progress;
  readonly #gpuDays = new GpuDays();
  #rounds = 0;
  #wereUp: ReadonlySet<string> = new Set();
  /** By login node name: failed connections in a row to its sshd, for login nodes on this machine. */
  readonly #silent = new Map<string, number>();
  readonly #logged = new Map<StateEvent, string>();

  constructor(cluster: SlurmCluster, progress: Progress) {
    this.#cluster = cluster;
    this.#progress = progress;
  }

  /** Observes the controller, hosts without a change that has just ended, and in rotation some hosts that are no longer in use. */
  async observeHosts(signal: AbortSignal, superseded?: AbortSignal): Promise<void> {
    const cluster = this.#cluster;
    const [controller] = cluster.hosts();
    // The controller's facts name the compute nodes.
    if (controller && !cluster.controllerFacts) await this.#ask(controller, signal);
    const left = cluster.leftHosts();
    this.#rounds += 1;
    const first = left.length === 0 ? 0 : (this.#rounds * maxLeftHostsAtOnce) % left.length;
    const some = [...left.slice(first), ...left.slice(0, first)].slice(0, maxLeftHostsAtOnce);
    const hosts = cluster.hosts();
    const due = [...hosts, ...some].filter(
      (host) => !cluster.takeFresh(host) || host.roles.has('controller'),
    );
    await Promise.all([this.#askLocalSshd(), this.#askHosts(due, signal, superseded)]);
    const asked = new Set(hosts.map(({ address }) => address));
    const fresh = cluster.hosts().filter(({ address }) => !asked.has(address));
    await this.#askHosts(fresh, signal, superseded);
    cluster.keepOnly(new Set([...cluster.hosts(), ...left].map(({ address }) => address)));
  }

  /** A newer wanted state ends the wait for compute nodes: a slow one must not delay changes on the others. */
  async #askHosts(
    hosts: readonly Host[],
    signal: AbortSignal,
    superseded: AbortSignal | undefined,
  ): Promise<void> {
    const observe = (host: Host) => this.#ask(host, signal);
    const ms = patienceMs.observe;
    const [front, behind] = [hosts.filter(isInFront), hosts.filter((host) => !isInFront(host))];
    await Promise.all([
      this.#cluster.onEach(front, observe, { ms }),
      this.#cluster.onEach(behind, observe, { ms, superseded }),
    ]);
  }

  /** Observes a host; the controller also gets the query for the day of GPU time that is due. */
  async #ask(host: Host, signal: AbortSignal): Promise<void> {
    const isController = host.roles.has('controller');
    const rows = isController ? this.#gpuDays.rows(Date.now()) : [];
    const facts = await this.#cluster.run(host, 'observe', rows, signal);
    if (isController && !(facts instanceof HostError)) this.#gpuDays.read(facts, Date.now());
  }

  /** Scripts for this machine run without SSH, but people log in through its sshd: checked by its banner. */
  async #askLocalSshd(): Promise<void> {
    const { settings } = this.#cluster;
    const local = settings.loginMode === 'PerUser' ? [] : settings.login.filter((one) => one.local);
    for (const { name, host, port = sshPort } of local) {
      const answer = await readBanner(host, port, bannerMs);
      const isSsh = 'banner' in answer && answer.banner.startsWith('SSH-');
      this.#silent.set(name, isSsh ? 0 : (this.#silent.get(name) ?? 0) + 1);
    }
  }

  /** Observes, then returns the report. Throws while the controller has never answered. */
  async report(signal: AbortSignal, superseded?: AbortSignal): Promise<SlurmReport> {
    await this.observeHosts(signal, superseded);
    const cluster = this.#cluster;
    const { settings, results, problems, controllerFacts, confirmed, wantedGeneration } = cluster;
    const hosts = cluster.hosts();
    const result = hosts[0] && results.get(hosts[0].address);
    if (!controllerFacts) throw result instanceof Error ? result : new Error('the controller said nothing');
    const { unreachable, ...left } = findLeftHosts(cluster);
    const report = reportOf({
      ...{ settings, hosts, results, problems, controllerFacts, confirmed, wantedGeneration, ...left },
      managed: new Set(cluster.record.left([]).map(({ address }) => address)),
      loginNodes: cluster.loginNodes(),
      wereUp: this.#wereUp,
      silent: this.#silent,
      isApplying: this.#progress.isApplying,
      progress: this.#progress.message,
      gpuDays: this.#gpuDays.take(),
    });
    this.#wereUp = new Set(report.loginNodes.filter(({ up }) => up).map(({ name }) => name));
    const ready = report.scheduler?.ready;
    this.#logOnce('slurm.left', unreachable.join('; '));
    this.#logOnce('slurm.fault', ready?.status === 'True' ? '' : ready?.message);
    this.#logOnce('slurm.drifted', this.#onHosts('drift').join('; '));
    this.#logOnce('slurm.noticed', this.#onHosts('notices').join('; '));
    return report;
  }

  #onHosts(kind: 'drift' | 'notices'): string[] {
    return [...this.#cluster.results].flatMap(([address, result]) =>
      result instanceof HostError ? [] : result[kind].map((one) => `${address}: ${one}`),
    );
  }

  /** Logs a state when it changes, not at every observation. */
  #logOnce(event: StateEvent, message = ''): void {
    const { name: cluster, log } = this.#cluster.options;
    if (this.#logged.get(event) !== message && message !== '') log.warn(event, { cluster, words: message });
    this.#logged.set(event, message);
  }
}
