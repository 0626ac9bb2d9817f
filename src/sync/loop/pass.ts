/** The dependencies and the result of a pass over one side of a cluster, and the access lists that passes need. */
import type { Cluster, Side, Silence } from '../../domain/clusters/cluster.ts';
import { messageOf } from '../../lib/error-message.ts';
import type { Logger } from '../../lib/log.ts';
import {
  deletePastEntries,
  updateListedUser,
  updateListedUsers,
} from '../../store/access/access-list-users.ts';
import { recordObserveFailure } from '../../store/clusters/cluster-sides.ts';
import { activateCluster } from '../../store/clusters/clusters.ts';
import type { Store } from '../../store/engine/index.ts';
import type { Queue } from './queue.ts';

export interface PassDeps {
  store: Store;
  lists: ListKeeper;
  /** Bounds the number of passes that use the database at the same time. */
  admission: Queue;
  /** The issuer of the subjects by which API servers identify people; undefined where they use something else. */
  subjectIssuer: string | undefined;
  intervalMs: number;
  log: Logger;
  now(): number;
  /**
   * Ends the sessions on a cluster that are no longer allowed, before its Slurm side is applied: people read the reason
   * before their account is removed. The implementation has a timeout.
   */
  recheckSessions?: ((clusterId: string) => Promise<void>) | undefined;
}

/**
 * One pass: observes a side of a cluster and applies the wanted state. Throws when the side cannot be reached or changed.
 * `superseded` is aborted by a change after the start; a pass that ends early because of it is `overtaken`.
 */
export type Pass<D> = (
  deps: PassDeps,
  cluster: Cluster,
  openDriver: (cluster: Cluster) => Promise<D>,
  signal: AbortSignal,
  superseded: AbortSignal,
) => Promise<PassResult | 'overtaken'>;

export interface PassResult {
  /** The generation of the manifest in force at the end; 0 where there is none. */
  generation: number;
  applied: boolean;
  activated: boolean;
  /** Whether the state wanted at the start of the pass is in force. */
  inForce: boolean;
  failure: string | null;
  /** When a grant on the cluster ends or a node needs another observation, in ms since 1970. */
  wakeAt?: number | undefined;
  /** The side was observed, but a change failed: worth a retry before the next interval. */
  retry?: boolean;
}

/** A cluster that does not answer within this time counts as unreachable. */
const observeLimitMs = 60_000;

export function atMost(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}

/** Whether the abort is because the service stops, which is not recorded as a failure. */
export function isStopping(signal: AbortSignal): boolean {
  return signal.aborted && (signal.reason as Error).name === 'AbortError';
}

export function aborted(signal: AbortSignal): Promise<undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  signal.addEventListener('abort', () => resolve(undefined));
  if (signal.aborted) resolve(undefined);
  return promise;
}

interface Observation<R> {
  side: Side;
  driver: { observe(signal: AbortSignal, superseded?: AbortSignal): Promise<R> };
  record(report: R): Promise<void>;
}

/**
 * Observes a side and records its report, or the failure to observe it. Returns the report, and whether it made the cluster
 * active.
 */
export async function observeSide<
  R extends { controlPlaneReady: boolean } & Pick<Silence, 'waiting' | 'silent'>,
>(
  { store, admission, log }: PassDeps,
  cluster: Cluster,
  { side, driver, record }: Observation<R>,
  signal: AbortSignal,
  superseded?: AbortSignal,
): Promise<{ report: R; activated: boolean }> {
  const report = await driver.observe(atMost(signal, observeLimitMs), superseded).catch(async (error) => {
    if (!isStopping(signal)) await recordObserveFailure(store, cluster.id, side, messageOf(error));
    throw error;
  });
  const activated = await admission(async () => {
    await record(report);
    const waiting = report.waiting?.length ?? 0;
    if (report.silent !== 'all') log.debug('sync.observed', { cluster: cluster.name, side, waiting });
    if (cluster.state !== 'provisioning' || !report.controlPlaneReady) return false;
    return store.write((tx) => activateCluster(tx, cluster.id));
  });
  return { report, activated };
}

export interface ListKeeper {
  /** Updates a person's entries in the access lists. */
  updateUser(userId: string): Promise<void>;
  /** Updates the entries of everyone in an organization; returns whether that changed its list. */
  updateOrganization(organizationId: string): Promise<boolean>;
  /** As `updateOrganization`, but joins an update that is under way: enough for a new cluster. */
  joinOrganization(organizationId: string): Promise<boolean>;
}

export function createListKeeper({ store }: { store: Store }): ListKeeper {
  const running = new Map<string, Promise<boolean>>();

  async function run(organizationId: string): Promise<boolean> {
    const changed = await updateListedUsers(store, organizationId);
    await deletePastEntries(store, organizationId);
    return changed;
  }

  function joinOrganization(organizationId: string): Promise<boolean> {
    const under =
      running.get(organizationId) ?? run(organizationId).finally(() => running.delete(organizationId));
    running.set(organizationId, under);
    return under;
  }

  return {
    joinOrganization,
    async updateOrganization(organizationId) {
      // An update that began before the change may have missed it.
      await running.get(organizationId)?.catch(() => {});
      return joinOrganization(organizationId);
    },
    async updateUser(userId) {
      await updateListedUser(store, userId);
    },
  };
}
