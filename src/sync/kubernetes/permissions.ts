/** One pass over people's permissions on a cluster: compares the present bindings to the wanted ones, and writes the difference. */
import {
  type Binding,
  type BindingPlan,
  boundRoles,
  type FoundBinding,
  keyOf,
  ownership,
  planBindings,
} from '../../domain/kubernetes/bindings.ts';
import { KubernetesError, meaningOf } from '../../domain/kubernetes/status.ts';
import { aborted } from '../loop/pass.ts';
import { createQueue } from '../loop/queue.ts';
import {
  type BindingItem,
  type BindingKind,
  creation,
  fieldManager,
  foundOf,
  labelSelector,
  nameOf,
  pathOfKind,
  pathOfRole,
  removal,
  repair,
} from './bindings.ts';
import { type KubernetesClient, type KubernetesRequest, reasonOf } from './client.ts';
import type { Faults } from './faults.ts';

interface BindingPass {
  client: KubernetesClient;
  lanes: Lanes;
  /** List all bindings, not only those with our labels: one of ours may have lost a label. */
  isThorough: boolean;
  clusterId: string;
  faults: Faults;
  signal: AbortSignal;
  /** Aborted when a newer state is wanted: writes under way go on in the background. */
  superseded: AbortSignal;
  /** Called after a write that a newer pass did not see. */
  wake(): void;
}

type Reader = Pick<BindingPass, 'client' | 'faults' | 'signal'>;

/** Limit of parallel writes: the server's store flushes many together. The server answers 429 when they are too many. */
const atOnce = 64;

export class Lanes {
  /** Queue of their own: removals never wait for grants. */
  readonly removals = createQueue(atOnce);
  readonly others = createQueue(atOnce);
  /** Keys of bindings with a write under way: one that hangs delays no other, and is not written twice. */
  readonly busy = new Set<string>();
  latest: object | undefined;
  readonly #written = new Map<string, { wanted: string; name: string; who: string; times: number[] }>();

  wrote(binding: Binding | FoundBinding, found: FoundBinding | undefined): void {
    const key = keyOf(binding);
    const wanted = 'role' in binding ? binding.subjects.join() : '';
    const before = this.#written.get(key);
    const rival =
      found?.changedBy === fieldManager ? "another installation with this cluster's ID" : found?.changedBy;
    const who = rival ?? before?.who ?? 'another client';
    // A change of the wanted subjects is our own, and starts a new count.
    const times = before?.wanted === wanted ? before.times : [];
    times.push(performance.now());
    this.#written.set(key, { wanted, name: nameOf(binding), who, times: times.slice(-often) });
  }

  /** Sentences about other clients that change our bindings again and again. */
  rivals(): string[] {
    const since = performance.now() - oftenMs;
    for (const [key, { times }] of this.#written) if ((times.at(-1) ?? 0) < since) this.#written.delete(key);
    return [...this.#written.values()]
      .filter(({ times }) => times.length === often && (times[0] ?? 0) >= since)
      .map(({ name, who }) => `${name} is changed by ${who} again and again, and put back each time`);
  }
}

/** Creating more would take longer than a change may. */
const mostBindings = 10_000;
/** After this many failed writes, the rest is left to the next pass. */
const mostTroubles = 50;
/** Another client counts as a rival after this many writes of a binding within `oftenMs` that no change here caused. */
const often = 5;
const oftenMs = 300_000;
const standing: readonly string[] = boundRoles;

/**
 * Writes the difference. Returns the writes (`again`: another client made a change meanwhile, which is worth another round at
 * once) and the namespaces that bindings wait for; undefined when superseded. Adds refusals to `faults`. Throws the network's
 * error when the bindings cannot be listed.
 */
export async function settleBindings(
  pass: BindingPass,
  wanted: readonly Binding[],
): Promise<{ writes: Writes; namespaces: ReadonlySet<string> } | undefined> {
  const { client, faults, signal, superseded } = pass;
  // Created before listing: a write of an earlier pass from now on may be missing in the lists, and ends with `wake`.
  const writes = new Writes(pass);
  const [found, isKnown] = await findOurs(pass, wanted);
  const known = wanted.filter(isKnown);
  // Removals need no namespaces or roles, and start first.
  for (const one of planBindings(known, found, undefined).remove) writes.remove(one);
  const isAnyInNamespace = wanted.some(({ namespace }) => namespace !== null);
  const [namespaces, missingRoles] = await Promise.all([
    isAnyInNamespace ? allowed(pass, 'namespaces', () => listNamespaces(client, signal)) : undefined,
    findMissingRoles(pass, wanted),
  ]);
  const plan = planBindings(known, found, namespaces);
  for (const [namespace, bindings] of plan.waiting) {
    faults.add(`The namespace ${namespace} does not exist, or is being deleted; ${waiting(bindings)}`);
  }
  if (wanted.length > mostBindings) {
    faults.add(
      `More than ${mostBindings} permissions are more than a cluster can have: nothing new is bound`,
    );
    plan.create = [];
  }
  writes.begin(plan, missingRoles);
  const isOver = await Promise.race([writes.end(), aborted(superseded), aborted(signal)]);
  signal.throwIfAborted();
  return isOver && { writes, namespaces: new Set(plan.waiting.keys()) };
}

/** Returns our present bindings, and whether bindings of a kind could be listed: a kind that could not is left alone. */
async function findOurs(
  pass: BindingPass,
  wanted: readonly Binding[],
): Promise<[FoundBinding[], (binding: Binding) => boolean]> {
  const { client, clusterId, isThorough, faults, signal } = pass;
  const query = isThorough ? {} : { labelSelector: labelSelector(clusterId) };
  const list = (kind: BindingKind) =>
    allowed(pass, kind, () => client.list<BindingItem>(pathOfKind(kind), signal, query));
  const [clusterWide, inNamespaces] = await Promise.all([list('clusterrolebindings'), list('rolebindings')]);
  const all = [...(clusterWide ?? []), ...(inNamespaces ?? [])].map(foundOf);
  const names = new Set(wanted.map(keyOf));
  for (const one of all) {
    // Creating our binding of that name will be refused, which is reported there.
    if (ownership(one, clusterId) !== 'suspect' || names.has(keyOf(one))) continue;
    faults.add(`${nameOf(one)} has one of our names and none of our labels: look whose it is, and remove it`);
  }
  const isKnown = ({ namespace }: Binding) => (namespace === null ? clusterWide : inNamespaces) !== undefined;
  return [all.filter((one) => ownership(one, clusterId) === 'ours'), isKnown];
}

async function allowed<T>({ faults }: Reader, what: string, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    faults.refused(error, { what });
    return undefined;
  }
}

async function listNamespaces(client: KubernetesClient, signal: AbortSignal): Promise<Map<string, boolean>> {
  const items = await client.list<{ metadata: { name: string }; status?: { phase?: string } }>(
    '/api/v1/namespaces',
    signal,
  );
  return new Map(items.map(({ metadata, status }) => [metadata.name, status?.phase !== 'Terminating']));
}

/** Checked because API servers bind missing roles for an account that may bind all, and keep bindings of deleted ones. */
export async function findMissingRoles(pass: Reader, wanted: readonly Binding[]): Promise<Set<string>> {
  const { client, faults, signal } = pass;
  const missing = new Set<string>();
  const roles = new Set(wanted.map(({ role }) => role).filter((role) => !standing.includes(role)));
  const check = (role: string) =>
    allowed(pass, `ClusterRole ${role}`, () =>
      client.request({ path: pathOfRole(role) }, signal).catch((error) => {
        if (!(error instanceof KubernetesError) || meaningOf(error).kind !== 'missing') throw error;
        missing.add(role);
        faults.add(`There is no ClusterRole ${role}; ${waiting(wanted.filter((one) => one.role === role))}`);
      }),
    );
  await Promise.all([...roles].map(check));
  return missing;
}

/** The writes of a pass, and their results. */
class Writes {
  readonly #pass: BindingPass;
  /** A refused request is not repeated: without the right, an account would be refused a thousand times. */
  readonly #refusals = new Map<string, KubernetesError>();
  readonly #begun: Promise<void>[] = [];
  readonly #leaving = new Set<FoundBinding>();
  #troubles = 0;
  /** Our bindings in force, including those that could not be removed. */
  readonly #bound = new Set<Binding | FoundBinding>();
  readonly change = { created: 0, repaired: 0, removed: 0 };
  again = false;
  /** Another object has the name of a binding that should be ours. */
  isNameTaken = false;

  constructor(pass: BindingPass) {
    this.#pass = pass;
    pass.lanes.latest = this;
  }

  get bound(): readonly Pick<Binding, 'name'>[] {
    return [...this.#bound];
  }

  remove(found: FoundBinding): void {
    if (this.#leaving.has(found)) return;
    this.#leaving.add(found);
    this.#bound.add(found);
    this.#begin('removals', found, () => this.#remove(found));
  }

  begin(plan: BindingPlan, missingRoles: ReadonlySet<string>): void {
    const isThere = ({ role }: Binding) => !missingRoles.has(role);
    for (const binding of plan.kept.filter(isThere)) this.#bound.add(binding);
    for (const found of plan.remove) this.remove(found);
    // A roleRef cannot change: this round removes the old binding, the next creates the new one.
    if (plan.replaces) this.again = true;
    for (const { found, binding } of plan.repair) {
      this.#begin('others', binding, async () => {
        if (!(await this.#make(repair(found, binding), binding, found))) return;
        this.#bound.add(binding);
        this.change.repaired += 1;
      });
    }
    for (const binding of plan.create.filter(isThere)) {
      this.#begin('others', binding, async () => {
        if (!(await this.#make(creation(binding), binding))) return;
        this.#bound.add(binding);
        this.change.created += 1;
        for (const one of plan.handOver) if (one.binding === binding) await this.#remove(one.found);
      });
    }
    for (const { found } of plan.handOver) this.#bound.add(found);
  }

  async end(): Promise<true> {
    await Promise.all(this.#begun);
    return true;
  }

  #begin(
    lane: 'removals' | 'others',
    about: Pick<Binding, 'namespace' | 'name'>,
    body: () => Promise<void>,
  ): void {
    const { lanes, wake } = this.#pass;
    const key = keyOf(about);
    if (lanes.busy.has(key)) return;
    lanes.busy.add(key);
    const work = async () => {
      try {
        if (lanes.latest === this) await body();
      } finally {
        lanes.busy.delete(key);
      }
      if (lanes.latest !== this) wake();
    };
    this.#begun.push(lanes[lane](work));
  }

  async #remove(found: FoundBinding): Promise<void> {
    if (!(await this.#make(removal(found), found, found))) return;
    this.#bound.delete(found);
    this.change.removed += 1;
  }

  async #make(
    request: KubernetesRequest,
    binding: Binding | FoundBinding,
    found?: FoundBinding,
  ): Promise<boolean> {
    const { client, lanes, faults, signal } = this.#pass;
    const role = 'role' in binding ? binding.role : undefined;
    const about = { what: nameOf(binding), ...(role === undefined ? {} : { role }) };
    const [right, bind] = [`${request.method} ${binding.namespace}`, `bind ${role}`];
    const known = this.#refusals.get(right) ?? (role === undefined ? undefined : this.#refusals.get(bind));
    if (known) faults.refused(known, about);
    if (known || this.#troubles >= mostTroubles) return false;
    try {
      await client.request(request, signal);
      lanes.wrote(binding, found);
      return true;
    } catch (error) {
      if (!(error instanceof KubernetesError)) {
        this.#troubles += 1;
        faults.failed(reasonOf(error));
        return false;
      }
      const { kind } = meaningOf(error, role);
      if (kind === 'missing' && request.method === 'DELETE') return true;
      if (kind === 'conflict' || kind === 'missing') this.again = true;
      if (kind === 'exists') this.isNameTaken = true;
      if (kind === 'trouble') this.#troubles += 1;
      if (kind === 'right') this.#refusals.set(right, error);
      if (kind === 'bind') this.#refusals.set(bind, error);
      faults.refused(error, about);
      return false;
    }
  }
}

function waiting({ length }: readonly unknown[]): string {
  return length === 1 ? '1 grant waits for it' : `${length} grants wait for it`;
}
