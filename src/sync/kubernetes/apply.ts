/** Applies people's permissions on one cluster: passes over the bindings, and the watches that ask for a pass. */
import {
  type KubernetesAccess,
  keyOf,
  knownClaims,
  permissionIdOf,
  type UsernameRule,
  wantedBindings,
} from '../../domain/kubernetes/bindings.ts';
import type { Logger } from '../../lib/log.ts';
import type { KubernetesOutcome } from '../driver.ts';
import { type Connection, reasonOf } from './client.ts';
import { createFaults } from './faults.ts';
import { settleBindings } from './permissions.ts';
import { type Expected, startWatching } from './watch.ts';

export interface ApplyOptions {
  clusterId: string;
  name: string;
  rule: UsernameRule;
  connection: Connection;
  wake(): void;
  log: Logger;
}

/** How often a pass is repeated at once when another client changed something meanwhile. */
const rounds = 3;
/** How often all bindings are listed, to find ours that have lost a label. */
const thoroughMs = 300_000;

/** Its state only saves requests: a new one does the same work. */
export class BindingApplier {
  readonly #options: ApplyOptions;
  readonly #claimFault: string | null;
  readonly #watching = new AbortController();
  #isWatching = false;
  #expected: Expected = { bindings: new Map(), namespaces: new Set() };
  /** When all bindings were listed last, and not only those with our labels. */
  #thoroughAt = Number.NEGATIVE_INFINITY;

  constructor(options: ApplyOptions) {
    this.#options = options;
    const { claim } = options.rule;
    this.#claimFault = knownClaims.includes(claim)
      ? null
      : `identity.kubernetes.usernameClaim is ${claim}, by which nobody is known here: it can be ${knownClaims.join(', ')}.`;
  }

  /** Throws what the network says where the API server does not answer. */
  async apply(access: KubernetesAccess, signal: AbortSignal): Promise<KubernetesOutcome> {
    const { clusterId, name, rule, connection, log } = this.#options;
    const client = await connection.open().catch((error) => ({ failure: reasonOf(error) }));
    // No retry: whether the settings or the files have changed is checked at every interval.
    if ('failure' in client) return { ...client, retry: false, bound: undefined };
    const wanted = wantedBindings(clusterId, access, rule);
    const bindings = new Map(wanted.map((binding) => [keyOf(binding), binding]));
    const isLess = this.#expected.bindings.keys().some((key) => !bindings.has(key));
    let isThorough = isLess || performance.now() - this.#thoroughAt > thoroughMs;
    this.#expected = { ...this.#expected, bindings };
    this.#watch();
    for (let round = 1; ; round++) {
      const faults = createFaults();
      const pass = { client, clusterId, isThorough, faults, signal };
      const { change, again, isNameTaken, waiting, bound } = await settleBindings(pass, wanted);
      this.#expected = { bindings, namespaces: waiting };
      if (isThorough) this.#thoroughAt = performance.now();
      if (change.created + change.repaired + change.removed > 0) {
        log.info('kubernetes.permitted', { cluster: name, ...change });
      }
      // A binding that has the name may be ours without our labels.
      const isDoubtful = isNameTaken && !isThorough;
      isThorough ||= isNameTaken;
      if ((again || isDoubtful) && round < rounds) continue;
      return {
        failure: this.#claimFault ?? faults.text() ?? null,
        retry: faults.mayPass(),
        bound: bound.map((one) => permissionIdOf(one, clusterId)),
      };
    }
  }

  /** Takes away everything of ours, also what lost its labels. Throws as `apply` does. */
  removeAll(signal: AbortSignal): Promise<KubernetesOutcome> {
    this.#thoroughAt = Number.NEGATIVE_INFINITY;
    return this.apply({ members: [], grants: [] }, signal);
  }

  close(): void {
    this.#watching.abort();
  }

  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const { clusterId, connection, wake } = this.#options;
    const connect = () => connection.open();
    startWatching({ clusterId, connect, expected: () => this.#expected, wake }, this.#watching.signal);
  }
}
