/** One pass over people's permissions on a cluster: what is there, what should be, and the writes between the two. */
import {
  type Binding,
  type BindingPlan,
  boundRoles,
  type FoundBinding,
  isAtLeast,
  keyOf,
  ownership,
  planBindings,
} from '../../domain/kubernetes/bindings.ts';
import { KubernetesError, meaningOf } from '../../domain/kubernetes/status.ts';
import {
  type BindingKind,
  createBinding,
  findClusterRole,
  forEach,
  listBindings,
  nameOf,
  removeBinding,
  repairBinding,
} from './bindings.ts';
import type { KubernetesClient } from './client.ts';
import type { Faults } from './faults.ts';

interface PermissionChange {
  created: number;
  repaired: number;
  removed: number;
}

interface Pass {
  client: KubernetesClient;
  /** List all bindings, not only those with our labels: one of ours may have lost a label. */
  isThorough: boolean;
  clusterId: string;
  faults: Faults;
  signal: AbortSignal;
}

export interface Settled {
  change: PermissionChange;
  again: boolean;
  /** Something has a name that one of ours should have. */
  isNameTaken: boolean;
  /** Ours that are there at the end. */
  bound: readonly Pick<Binding, 'name'>[];
  /** The namespaces that are waited for. */
  waiting: ReadonlySet<string>;
}

/** After so many failed writes, the rest waits for the next pass. */
const mostTroubles = 50;
const standing: readonly string[] = boundRoles;

/**
 * Writes the difference; returns what was changed, and whether another client changed something meanwhile, which is worth
 * another round at once. Refusals go into `faults`. Throws errors of the network.
 */
export async function settleBindings(pass: Pass, wanted: readonly Binding[]): Promise<Settled> {
  const plan = await planPass(pass, wanted);
  await dropMissingRoles(pass, plan);
  for (const [namespace, bindings] of plan.waiting) {
    pass.faults.add(`The namespace ${namespace} does not exist, or is being deleted; ${waiting(bindings)}`);
  }
  return { ...(await write(pass, plan)), waiting: new Set(plan.waiting.keys()) };
}

/** The plan, from what is there. A kind that cannot be listed is left alone, as it is not known which are ours. */
async function planPass(pass: Pass, wanted: readonly Binding[]): Promise<BindingPlan> {
  const { client, clusterId, isThorough, faults, signal } = pass;
  const list = (kind: BindingKind) =>
    allowed(pass, kind, () => listBindings(client, kind, isThorough ? undefined : clusterId, signal));
  const isAnyInNamespace = wanted.some(({ namespace }) => namespace !== null);
  const [clusterWide, inNamespaces, namespaces] = await Promise.all([
    list('clusterrolebindings'),
    list('rolebindings'),
    isAnyInNamespace ? allowed(pass, 'namespaces', () => listNamespaces(client, signal)) : undefined,
  ]);
  const isKnown = ({ namespace }: Binding) => (namespace === null ? clusterWide : inNamespaces) !== undefined;
  const all = [...(clusterWide ?? []), ...(inNamespaces ?? [])];
  const found = all.filter((one) => ownership(one, clusterId) === 'ours');
  const names = new Set(wanted.map(keyOf));
  for (const one of all) {
    // Where one of ours should be, making it is refused, and that is reported.
    if (ownership(one, clusterId) !== 'suspect' || names.has(keyOf(one))) continue;
    faults.add(`${nameOf(one)} has one of our names and none of our labels: look whose it is, and remove it`);
  }
  return planBindings(wanted.filter(isKnown), found, namespaces);
}

/** What is asked for; undefined, and a fault, where it is refused. */
async function allowed<T>({ faults }: Pass, what: string, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    faults.refused(error, { what });
    return undefined;
  }
}

async function listNamespaces(client: KubernetesClient, signal: AbortSignal): Promise<Map<string, boolean>> {
  const { items } = await client.request<{
    items: { metadata: { name: string }; status?: { phase?: string } }[];
  }>({ path: '/api/v1/namespaces' }, signal);
  return new Map(items.map(({ metadata, status }) => [metadata.name, status?.phase !== 'Terminating']));
}

/** Roles are checked first, as the server binds also roles that do not exist, for an account that may bind everything. */
async function dropMissingRoles(pass: Pass, plan: BindingPlan): Promise<void> {
  const { client, faults, signal } = pass;
  const bindings = [...plan.create, ...plan.replace.map(({ binding }) => binding)];
  const roles = new Set(bindings.map(({ role }) => role).filter((role) => !standing.includes(role)));
  for (const role of roles) {
    try {
      await findClusterRole(client, role, signal);
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      if (meaningOf(error).kind !== 'missing') {
        faults.refused(error, { what: `ClusterRole ${role}` });
        continue;
      }
      const concerned = bindings.filter((binding) => binding.role === role);
      faults.add(`There is no ClusterRole ${role}; ${waiting(concerned)}`);
      plan.remove.push(...plan.replace.filter((one) => one.binding.role === role).map(({ found }) => found));
      plan.replace = plan.replace.filter((one) => one.binding.role !== role);
      plan.create = plan.create.filter((one) => one.role !== role);
    }
  }
}

/** Attempts to write, and what becomes of them. */
class Attempts {
  readonly #faults: Faults;
  /** After one refusal the same request is not repeated: an account without the right would be refused a thousand times. */
  readonly #refusals = new Map<string, KubernetesError>();
  #troubles = 0;
  again = false;
  isNameTaken = false;

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  /** Whether it succeeded. */
  async make(
    verb: 'create' | 'patch' | 'delete',
    binding: Binding | FoundBinding,
    body: () => Promise<void>,
  ): Promise<boolean> {
    const role = 'role' in binding ? binding.role : undefined;
    const about = { what: nameOf(binding), ...(role === undefined ? {} : { role }) };
    const [right, bind] = [`${verb} ${binding.namespace}`, `bind ${role}`];
    const known = this.#refusals.get(right) ?? (role === undefined ? undefined : this.#refusals.get(bind));
    if (known) this.#faults.refused(known, about);
    if (known || this.#troubles >= mostTroubles) return false;
    try {
      await body();
      return true;
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      const { kind } = meaningOf(error, role);
      if (kind === 'missing' && verb === 'delete') return true;
      if (kind === 'conflict' || kind === 'missing') this.again = true;
      if (kind === 'exists') this.isNameTaken = true;
      if (kind === 'trouble') this.#troubles += 1;
      if (kind === 'right') this.#refusals.set(right, error);
      if (kind === 'bind') this.#refusals.set(bind, error);
      this.#faults.refused(error, about);
      return false;
    }
  }
}

/**
 * Removals come first: if the pass is aborted half-way, no person has more rights than they should. A binding that is replaced
 * by one with the same rights or more is removed last, and stays if the new one is refused: a refusal takes no rights away.
 */
async function write({ client, faults, signal }: Pass, plan: BindingPlan): Promise<Omit<Settled, 'waiting'>> {
  const change: PermissionChange = { created: 0, repaired: 0, removed: 0 };
  const attempts = new Attempts(faults);
  const gone = new Set<FoundBinding>();
  const remove = async (found: FoundBinding) => {
    const isDone = await attempts.make('delete', found, () => removeBinding(client, found, signal));
    if (isDone) {
      gone.add(found);
      change.removed += 1;
    }
    return isDone;
  };
  const made = new Set<Binding>(plan.kept);
  const create = async (binding: Binding) => {
    if (!(await attempts.make('create', binding, () => createBinding(client, binding, signal)))) return;
    made.add(binding);
    change.created += 1;
  };
  await forEach(plan.remove, async (found) => void (await remove(found)));
  await forEach(plan.replace, async ({ found, binding }) => {
    // The names are the same, so the old one is removed first, once the server has confirmed that it would take the new one.
    const isLess = !isAtLeast(binding.role, found.roleRef.name ?? '');
    const mayCome = await attempts.make('create', binding, () =>
      createBinding(client, binding, signal, true),
    );
    if ((mayCome || isLess) && (await remove(found)) && mayCome) await create(binding);
  });
  await forEach(plan.repair, async (one) => {
    const isDone = await attempts.make('patch', one.binding, () => repairBinding(client, one, signal));
    if (!isDone) return;
    made.add(one.binding);
    change.repaired += 1;
  });
  await forEach(plan.create, create);
  const over = plan.handOver.filter(({ binding }) => made.has(binding));
  await forEach(over, async ({ found }) => void (await remove(found)));
  // What could not be taken away is still in force.
  const left = [...plan.remove, ...plan.handOver.map(({ found }) => found)].filter((one) => !gone.has(one));
  const { again, isNameTaken } = attempts;
  return { change, again, isNameTaken, bound: [...made, ...left] };
}

function waiting({ length }: readonly unknown[]): string {
  return length === 1 ? '1 grant waits for it' : `${length} grants wait for it`;
}
