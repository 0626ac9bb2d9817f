/** A part of the composition root: the drivers of clusters. */
import { join } from 'node:path';
import type { Config } from './config.ts';
import { DomainError } from './domain/error.ts';
import type { KubernetesCheck } from './domain/kubernetes-rights.ts';
import type { KubernetesSettings } from './domain/kubernetes-settings.ts';
import type { LabCluster } from './domain/lab.ts';
import type { SlurmSettings } from './domain/slurm-settings.ts';
import type { Logger } from './log.ts';
import { type Cluster, findCluster } from './store/clusters.ts';
import type { Store } from './store/index.ts';
import { findKubernetesAccess } from './store/kubernetes-access.ts';
import { findObservation } from './store/observations.ts';
import { findOrganization } from './store/organizations.ts';
import type { Driver } from './sync/index.ts';

/** Where people sign in, and the name that the API servers take from their tokens. */
function usernameRule({ identity }: Config) {
  return {
    claim: identity.kubernetes?.usernameClaim ?? 'email',
    issuer: identity.issuer ?? identity.embedded.url,
  };
}

async function kubernetesDriver(
  cluster: Cluster,
  settings: KubernetesSettings,
  { config, store, log, now }: { config: Config; store: Store; log: Logger; now(): number },
): Promise<Driver> {
  const { createKubernetesDriver } = await import('./sync/drivers/kubernetes/index.ts');
  const rule = usernameRule(config);
  return createKubernetesDriver({
    clusterId: cluster.id,
    name: cluster.name,
    settings,
    access: () =>
      findKubernetesAccess(store.read, cluster, rule.claim === 'sub' ? rule.issuer : undefined, now()),
    rule,
    log,
  });
}

async function slurmDriver(
  cluster: Cluster,
  settings: SlurmSettings,
  deps: { config: Config; store: Store; endSessions(loginNode: string): void; log: Logger },
): Promise<Driver> {
  const { config, store, endSessions, log } = deps;
  const { createSlurmDriver } = await import('./sync/drivers/slurm/index.ts');
  const organization = await findOrganization(store.read, cluster.organization_id);
  if (!organization) throw new Error(`the organization of cluster ${cluster.name} is gone from the database`);
  return createSlurmDriver({
    name: cluster.name,
    clusterId: cluster.id,
    organization: organization.slug,
    settings,
    dataDir: join(config.dataDir, 'clusters', cluster.id),
    endSessions,
    log,
  });
}

/** Which rights we have at a cluster's API server. Throws `invalid_state` where it has none that we know. */
export async function checkCluster(
  cluster: Cluster,
  { store, now }: { store: Store; now(): number },
): Promise<KubernetesCheck> {
  const { kubernetes } = JSON.parse(cluster.driver) as Pick<LabCluster, 'kubernetes'>;
  if (!kubernetes) {
    throw new DomainError(
      'invalid_state',
      `Cluster ${cluster.name} has no kubernetes section to be checked.`,
    );
  }
  const { checkKubernetes } = await import('./sync/drivers/kubernetes/check.ts');
  const { grants } = await findKubernetesAccess(store.read, cluster, undefined, now());
  const roleIds = new Set(grants.flatMap(({ roleId }) => roleId ?? []));
  return checkKubernetes(kubernetes, [...roleIds].sort());
}

/**
 * Why there is no login node for a simulated cluster, in words; undefined where there is one. Without root, its sessions
 * have the rights of the service: they can read the keys that everybody's tokens are signed with.
 */
function refusalOfLoginNode({ name, scheduler }: Cluster, config: Config, log: Logger): string | undefined {
  if (process.getuid?.() === 0 || scheduler !== 'sunk' || config.demo) return undefined;
  const what =
    "its sessions run as the service's own account, which can read the service's keys and database";
  if (config.clusters.unsafeSimulatedLogins) {
    log.warn('simulated.unsafe', {
      cluster: name,
      message: `This service is not root, so there is nothing between it and a simulated login node: ${what}.`,
    });
    return undefined;
  }
  const refusal = `There is no login node: this service is not root, so ${what}. Where nobody can do harm with that, set clusters.unsafeSimulatedLogins: true in the configuration; otherwise run the service as root.`;
  log.warn('simulated.login_node_refused', { cluster: name, message: refusal });
  return refusal;
}

/** The driver that a cluster's settings ask for, with what it needs of other rooms. */
export async function createDriver(
  cluster: Cluster,
  deps: {
    config: Config;
    store: Store;
    gatewayKey: string;
    endSessions(loginNode: string): void;
    log: Logger;
    now(): number;
  },
): Promise<Driver> {
  const { config, store, gatewayKey, endSessions, log } = deps;
  const { slurm, kubernetes } = JSON.parse(cluster.driver) as Pick<LabCluster, 'slurm' | 'kubernetes'>;
  if (slurm && kubernetes) {
    const { createBothDriver } = await import('./sync/drivers/both.ts');
    return createBothDriver({
      name: cluster.name,
      slurm: await slurmDriver(cluster, slurm, deps),
      kubernetes: await kubernetesDriver(cluster, kubernetes, deps),
      hasReported: (await findObservation(store.read, cluster.id)) !== undefined,
      log,
      now: deps.now,
    });
  }
  if (slurm) return slurmDriver(cluster, slurm, deps);
  if (kubernetes) return kubernetesDriver(cluster, kubernetes, deps);
  const { createSimulatedDriver } = await import('./sync/drivers/simulated/index.ts');
  const loginNodeRefusal = refusalOfLoginNode(cluster, config, log);
  return createSimulatedDriver({
    name: cluster.name,
    scheduler: cluster.scheduler,
    settings: async () =>
      JSON.parse((await findCluster(store.read, cluster.id))?.driver ?? cluster.driver).simulated,
    dataDir: join(config.dataDir, 'clusters', cluster.id),
    loginNodeRefusal,
    log,
    async startLoginNode(dataDir, accounts) {
      const { openLoginNode } = await import('./login-node/on-demand.ts');
      const node = await openLoginNode({
        dataDir: join(dataDir, 'login'),
        authorizedKey: gatewayKey,
        accounts,
        log,
      });
      return {
        host: node.host,
        port: node.port,
        hostKey: node.hostKey,
        get running() {
          return node.running;
        },
        setAccounts: (next) => node.setAccounts(next),
        stop() {
          endSessions(`${node.host}:${node.port}`);
          return node.stop();
        },
      };
    },
  });
}
