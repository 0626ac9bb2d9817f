/** What a change of people restarts on a Slurm cluster, and whose jobs that ends, before it is made. */
import type { RunningJob } from '../../domain/access/manifest.ts';
import { isInService } from '../../domain/clusters/cluster.ts';
import { restartPlan } from '../../domain/slurm/restart-plan.ts';
import type { SlurmRollout } from '../../domain/slurm/settings.ts';
import { listWantedUsers } from '../../store/access/access-list-users.ts';
import { listAllClusters } from '../../store/clusters/clusters.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import type { Reader, Tx } from '../../store/engine/index.ts';

/** A person who has an account on a cluster, with or without a key yet. */
export interface LoginAccount {
  username: string;
  loginState: 'ready' | 'waiting_for_key';
}

export interface SlurmCluster {
  id: string;
  name: string;
  rollout: SlurmRollout;
  accounts: LoginAccount[];
}

/**
 * What a cluster restarts, and whose jobs end, as it goes from the accounts that it `had` to those of `stays`; one that leaves
 * service (undefined) loses its accounts and all of its jobs. Where nothing is restarted that need not be, only the jobs of
 * those who go end.
 */
export async function restartOf(
  db: Reader,
  { id, name, rollout }: SlurmCluster,
  had: readonly LoginAccount[],
  stays: SlurmCluster | undefined,
) {
  const plan = restartPlan(had, stays?.accounts ?? []);
  const isLive = (stays?.rollout ?? rollout) === 'live';
  const ends = !stays || plan.restarts.includes('compute');
  const running = ends ? await listRunningJobs(db, id) : [];
  const jobs = stays && isLive ? running.filter(({ user }) => plan.removed.includes(user)) : running;
  return {
    cluster_id: id,
    cluster_name: name,
    added: plan.added,
    removed: plan.removed,
    ...(isLive ? { rollout: 'live' as const } : {}),
    restarts: stays && !isLive ? [...plan.restarts] : [],
    ended_jobs: jobs.map(({ id, user, name, machines }) => ({ id, user, name, machines: [...machines] })),
  };
}

async function listRunningJobs(db: Reader, clusterId: string): Promise<readonly RunningJob[]> {
  const observation = await findObservation(db, clusterId, 'slurm');
  return observation?.report.runningJobs ?? [];
}

type Restart = Awaited<ReturnType<typeof restartOf>>;

/** Whom each Slurm cluster in service must know. */
export async function listSlurmAccounts({ db, now }: Tx): Promise<SlurmCluster[]> {
  const lists = new Map<string, LoginAccount[]>();
  const clusters: SlurmCluster[] = [];
  for (const { id, name, state, scheduler, driver, organizationId } of await listAllClusters(db)) {
    if (scheduler !== 'sunk' || !isInService({ state })) continue;
    let accounts = lists.get(organizationId);
    if (!accounts) {
      const users = await listWantedUsers(db, organizationId, now);
      accounts = users.map(({ username, desiredLoginState: loginState }) => ({ username, loginState }));
      lists.set(organizationId, accounts);
    }
    clusters.push({ id, name, rollout: driver.slurm?.rollout ?? 'restart', accounts });
  }
  return clusters;
}

/** What the clusters restart, and whose jobs that ends, as they go from what `listSlurmAccounts` said to what it says now. */
export async function listRestarts(tx: Tx, before: readonly SlurmCluster[]): Promise<Restart[]> {
  const after = await listSlurmAccounts(tx);
  const known = new Set(before.map(({ id }) => id));
  const restarts: Restart[] = [];
  for (const cluster of [...before, ...after.filter(({ id }) => !known.has(id))]) {
    const stays = after.find(({ id }) => id === cluster.id);
    const had = known.has(cluster.id) ? cluster.accounts : [];
    const restart = await restartOf(tx.db, cluster, had, stays);
    const { added, removed, ended_jobs: jobs } = restart;
    if (added.length + removed.length + jobs.length > 0) restarts.push(restart);
  }
  return restarts;
}
