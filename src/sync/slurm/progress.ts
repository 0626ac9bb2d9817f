/** Progress of the `apply` under way, for the log and for the cluster's condition in reports. */
import type { Logger } from '../../lib/log.ts';
import type { Host } from './hosts.ts';

interface Counts {
  done: number;
  hosts: number;
  added: number;
  removed: number;
}

export class Progress {
  isApplying = false;
  readonly #cluster: string;
  readonly #log: Logger;
  #counts: Counts | undefined;
  #startedAt = 0;

  constructor(cluster: string, log: Logger) {
    this.#cluster = cluster;
    this.#log = log;
  }

  async during(apply: () => Promise<void>): Promise<void> {
    this.isApplying = true;
    try {
      await apply();
    } finally {
      this.isApplying = false;
      this.#counts = undefined;
    }
  }

  /** `hosts`: number of hosts that get the change; `added` and `removed`: number of people whose accounts come and go. */
  start(counts: Omit<Counts, 'done'>): void {
    this.#counts = { done: 0, ...counts };
    this.#startedAt = performance.now();
  }

  hostDone({ address }: Host): void {
    if (!this.#counts) return;
    this.#counts.done += 1;
    const { done, hosts } = this.#counts;
    const ms = Math.round(performance.now() - this.#startedAt);
    this.#log[this.#level]('slurm.progress', { cluster: this.#cluster, host: address, done, hosts, ms });
  }

  applied(generation: number): void {
    if (!this.#counts) return;
    const { added, removed } = this.#counts;
    this.#log[this.#level]('slurm.applied', { cluster: this.#cluster, generation, added, removed });
  }

  get message(): string | undefined {
    if (!this.#counts) return undefined;
    const { done, hosts, added, removed } = this.#counts;
    return `${done} of ${hosts} hosts have what changed (people: ${added + removed}).`;
  }

  /** Changes without people are logged at debug level only. */
  get #level(): 'info' | 'debug' {
    return this.#counts && this.#counts.added + this.#counts.removed > 0 ? 'info' : 'debug';
  }
}
