/** Applies people's permissions on one cluster: passes over the bindings, and the watches that ask for a pass. */
import {
  type KubernetesAccess,
  keyOf,
  nameFaults,
  permissionIdOf,
  type UsernameRule,
  wantedBindings,
} from '../../domain/kubernetes/bindings.ts';
import type { Logger } from '../../lib/log.ts';
import type { KubernetesOutcome } from '../driver.ts';
import { type KubernetesClient, reasonOf } from './client.ts';
import { Faults } from './faults.ts';
import { Lanes, settleBindings } from './permissions.ts';
import { type Expected, startWatching } from './watch.ts';

export interface ApplyOptions {
  clusterId: string;
  name: string;
  rule: UsernameRule;
  client: KubernetesClient;
  wake(): void;
  log: Logger;
}

const rounds = 3;
const thoroughMs = 300_000;

/** Its state only saves requests: a new one does the same work. */
export class BindingApplier {
  readonly #options: ApplyOptions;
  readonly #watching = new AbortController();
  readonly #lanes = new Lanes();
  #isWatching = false;
  #expected: Expected = { bindings: new Map(), namespaces: new Set() };
  /** When all bindings were listed last, and not only those with our labels. */
  #thoroughAt = Number.NEGATIVE_INFINITY;

  constructor(options: ApplyOptions) {
    this.#options = options;
  }

  /** Undefined where something newer is wanted. Throws what the network says where the API server does not answer. */
  async apply(
    access: KubernetesAccess,
    signal: AbortSignal,
    superseded: AbortSignal,
  ): Promise<KubernetesOutcome | undefined> {
    const { clusterId, name, rule, client, wake, log } = this.#options;
    const wanted = wantedBindings(clusterId, access, rule);
    const bindings = new Map(wanted.map((binding) => [keyOf(binding), binding]));
    const isLess = this.#expected.bindings.keys().some((key) => !bindings.has(key));
    // Something that goes may have lost a label.
    if (isLess) this.#thoroughAt = Number.NEGATIVE_INFINITY;
    this.#expected = { ...this.#expected, bindings };
    try {
      await client.open(signal);
    } catch (error) {
      signal.throwIfAborted();
      // No retry: whether the settings or the files have changed is checked at every interval.
      return { failure: reasonOf(error), retry: false, bound: undefined };
    }
    this.#watch();
    const isDue = () => performance.now() - this.#thoroughAt > thoroughMs;
    // What goes and is known by its labels does not wait for a list of everything.
    let isThorough = isDue() && !isLess;
    for (let round = 1; ; round++) {
      const faults = new Faults();
      for (const fault of nameFaults(access, rule)) faults.add(fault);
      const parts = { client, clusterId, lanes: this.#lanes, wake };
      const settled = await settleBindings({ ...parts, isThorough, faults, signal, superseded }, wanted);
      if (!settled) return undefined;
      const { change, again, isNameTaken, bound } = settled.writes;
      this.#expected = { bindings, namespaces: settled.namespaces };
      if (isThorough) this.#thoroughAt = performance.now();
      if (change.created + change.repaired + change.removed > 0) {
        log.info('kubernetes.permitted', { cluster: name, ...change });
      }
      // A binding that has the name may be ours without our labels.
      const isDoubtful = !isThorough && (isNameTaken || isDue());
      isThorough ||= isDoubtful;
      if ((again || isDoubtful) && round < rounds) continue;
      return {
        failure: faults.text(),
        retry: faults.mayPass,
        bound: bound.map((one) => permissionIdOf(one, clusterId)),
      };
    }
  }

  /** Takes away everything of ours, also what lost its labels. Throws as `apply` does. */
  async removeAll(signal: AbortSignal): Promise<string | null> {
    this.#thoroughAt = Number.NEGATIVE_INFINITY;
    const outcome = await this.apply({ members: [], grants: [] }, signal, new AbortController().signal);
    return outcome?.failure ?? null;
  }

  close(): void {
    this.#watching.abort();
    this.#lanes.latest = undefined;
  }

  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const { clusterId, client, wake } = this.#options;
    startWatching({ clusterId, client, expected: () => this.#expected, wake }, this.#watching.signal);
  }
}
