/** Applies people's permissions on one cluster: runs passes over its bindings, and starts the watches that request passes. */
import { isDeepStrictEqual } from 'node:util';
import {
  type Binding,
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
import { findMissingRoles, Lanes, settleBindings } from './permissions.ts';
import { startWatching, type WantedState } from './watch.ts';

export interface ApplyOptions {
  clusterId: string;
  name: string;
  rule: UsernameRule;
  client: KubernetesClient;
  /** Called when the cluster changed by itself, or the API server answers again. */
  wake(): void;
  log: Logger;
}

const rounds = 3;
const thoroughMs = 300_000;

/** Its state is only a cache that saves requests: a new instance does the same work. */
export class BindingApplier {
  readonly #options: ApplyOptions;
  readonly #lanes = new Lanes();
  #watching = new AbortController();
  #watch: (ReturnType<typeof startWatching> & { held: object }) | undefined;
  /**
   * The last outcome, valid while no watch has seen a change since: `seen` was read before the lists, a dead watch fails
   * within 73 s.
   */
  #settled: { seen: number; bindings: object; outcome: KubernetesOutcome } | undefined;
  #expected: WantedState = { bindings: new Map(), namespaces: new Set() };
  /** When all bindings were last listed, not only those with our labels. */
  #thoroughAt = Number.NEGATIVE_INFINITY;

  constructor(options: ApplyOptions) {
    this.#options = options;
  }

  /** Returns undefined when superseded. Throws the network's error when the API server does not answer. */
  async apply(
    access: KubernetesAccess,
    signal: AbortSignal,
    superseded: AbortSignal,
  ): Promise<KubernetesOutcome | undefined> {
    const { clusterId, rule, client, wake } = this.#options;
    const wanted = wantedBindings(clusterId, access, rule);
    const bindings = new Map(wanted.map((binding) => [keyOf(binding), binding]));
    const isLess = this.#expected.bindings.keys().some((key) => !bindings.has(key));
    // A binding that must be removed may have lost a label.
    if (isLess) this.#thoroughAt = Number.NEGATIVE_INFINITY;
    const held = await client.open(signal).catch(reasonOf);
    signal.throwIfAborted();
    // No retry: the next interval checks whether the settings or files have changed.
    if (typeof held === 'string') return { failure: held, retry: false, bound: undefined };
    this.#expected = { ...this.#expected, bindings };
    if (this.#watch?.held !== held) {
      // A watch's resource versions belong to one server.
      this.#watching.abort();
      this.#watching = new AbortController();
      const watched = { clusterId, client, expected: () => this.#expected, wake };
      this.#watch = { held, ...startWatching(watched, this.#watching.signal) };
    }
    const seen = this.#watch.seen();
    const before = this.#settled;
    const isSame = before?.seen === seen && isDeepStrictEqual(before?.bindings, bindings);
    if (before && isSame && !this.#isThoroughDue() && nameFaults(access, rule).length === 0) {
      const faults = new Faults();
      await findMissingRoles({ client, faults, signal }, wanted);
      if (faults.text() === null) return before.outcome;
    }
    this.#settled = undefined;
    const outcome = await this.#settle({ wanted, access, isLess }, signal, superseded);
    if (outcome?.failure === null && seen !== undefined) this.#settled = { seen, bindings, outcome };
    return outcome;
  }

  async #settle(
    { wanted, access, isLess }: { wanted: readonly Binding[]; access: KubernetesAccess; isLess: boolean },
    signal: AbortSignal,
    superseded: AbortSignal,
  ): Promise<KubernetesOutcome | undefined> {
    const { clusterId, name, rule, client, log } = this.#options;
    // Bindings with our labels are removed first, before a list of all bindings.
    let isThorough = this.#isThoroughDue() && !isLess;
    for (let round = 1; ; round++) {
      const faults = new Faults();
      const parts = { client, clusterId, lanes: this.#lanes, wake: () => this.#watch?.wake() };
      const settled = await settleBindings({ ...parts, isThorough, faults, signal, superseded }, wanted);
      if (!settled) return undefined;
      const { change, again, isNameTaken, bound } = settled.writes;
      this.#expected = { ...this.#expected, namespaces: settled.namespaces };
      if (isThorough) this.#thoroughAt = performance.now();
      if (change.created + change.repaired + change.removed > 0) {
        log.info('kubernetes.permitted', { cluster: name, ...change });
      }
      // The binding that has the name may be ours, without our labels.
      const isDoubtful = !isThorough && (isNameTaken || this.#isThoroughDue());
      isThorough ||= isDoubtful;
      if ((again || isDoubtful) && round < rounds) continue;
      for (const fault of [...nameFaults(access, rule), ...this.#lanes.rivals()]) faults.add(fault);
      return {
        failure: faults.text(),
        retry: faults.mayPass,
        bound: bound.map((one) => permissionIdOf(one, clusterId)),
      };
    }
  }

  /** Removes all bindings of ours, also those that lost a label. Throws as `apply` does. */
  async removeAll(signal: AbortSignal): Promise<string | null> {
    this.#thoroughAt = Number.NEGATIVE_INFINITY;
    const outcome = await this.apply({ members: [], grants: [] }, signal, new AbortController().signal);
    return outcome?.failure ?? null;
  }

  close(): void {
    this.#watching.abort();
    this.#lanes.latest = undefined;
  }

  #isThoroughDue(): boolean {
    return performance.now() - this.#thoroughAt > thoroughMs;
  }
}
