/** Observes the hosts of a cluster, controller first, and puts together its report. */
import type { SlurmReport } from '../../../domain/manifest.ts';
import type { SlurmCluster } from './cluster.ts';
import { findLeftHosts, maxLeftHostsAtOnce } from './left-hosts.ts';
import type { Progress } from './progress.ts';
import { reportOf } from './report.ts';
import { HostError } from './shell.ts';

type StateEvent = 'slurm.fault' | 'slurm.drifted' | 'slurm.left';

export class Observer {
  readonly #cluster: SlurmCluster;
  readonly #progress: Progress;
  #rounds = 0;
  #wereUp: ReadonlySet<string> = new Set();
  readonly #logged = new Map<StateEvent, string>();

  constructor(cluster: SlurmCluster, progress: Progress) {
    this.#cluster = cluster;
    this.#progress = progress;
  }

  /** Asks every host, and some of those that are not in use any more, in rotation. */
  async observeHosts(signal: AbortSignal): Promise<void> {
    const cluster = this.#cluster;
    const [controller] = cluster.hosts();
    if (controller) await cluster.run(controller, 'observe', [], signal);
    const hosts = cluster.hosts();
    const others = hosts.filter(({ address }) => address !== controller?.address);
    const left = cluster.leftHosts();
    this.#rounds += 1;
    const first = left.length === 0 ? 0 : (this.#rounds * maxLeftHostsAtOnce) % left.length;
    const some = [...left.slice(first), ...left.slice(0, first)].slice(0, maxLeftHostsAtOnce);
    await Promise.all([...others, ...some].map((host) => cluster.run(host, 'observe', [], signal)));
    const known = new Set([...hosts, ...left].map(({ address }) => address));
    for (const address of cluster.results.keys()) if (!known.has(address)) cluster.results.delete(address);
  }

  /** Throws while the controller has never answered. */
  async report(signal: AbortSignal): Promise<SlurmReport> {
    await this.observeHosts(signal);
    const cluster = this.#cluster;
    const { settings, results, problems, controllerFacts } = cluster;
    const hosts = cluster.hosts();
    const result = hosts[0] && results.get(hosts[0].address);
    if (!controllerFacts) throw result instanceof Error ? result : new Error('the controller said nothing');
    const { unreachable, ...left } = findLeftHosts(cluster);
    const report = reportOf({
      ...{ settings, hosts, results, problems, controllerFacts, ...left },
      loginNodes: cluster.loginNodes(),
      wereUp: this.#wereUp,
      isApplying: this.#progress.isApplying,
      progress: this.#progress.message,
    });
    this.#wereUp = new Set(report.loginNodes.filter(({ up }) => up).map(({ name }) => name));
    const ready = report.scheduler?.ready;
    this.#logOnce('slurm.left', unreachable.join('; '));
    this.#logOnce('slurm.fault', ready?.status === 'True' ? '' : ready?.message);
    this.#logOnce('slurm.drifted', this.#drift().join('; '));
    return report;
  }

  #drift(): string[] {
    return [...this.#cluster.results].flatMap(([address, result]) =>
      result instanceof HostError ? [] : result.drift.map((one) => `${address}: ${one}`),
    );
  }

  /** Logs a state when it changes, and not at every observation. */
  #logOnce(event: StateEvent, message = ''): void {
    const { name: cluster, log } = this.#cluster.options;
    if (this.#logged.get(event) !== message && message !== '') log.warn(event, { cluster, words: message });
    this.#logged.set(event, message);
  }
}
