/** A part of the composition root: the drivers of clusters. */
import { join } from 'node:path';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import { allKeys, knownHostsName } from '../../domain/key-rotation.ts';
import type { KubernetesCheck } from '../../domain/kubernetes/status.ts';
import type { ClusterSurvey } from '../../domain/slurm/survey-person.ts';
import { findHostOwners } from '../../lib/host-ids.ts';
import type { Logger } from '../../lib/log.ts';
import { findKubernetesAccess } from '../../store/access/kubernetes-access.ts';
import { findCluster } from '../../store/clusters/clusters.ts';
import { findObservation } from '../../store/clusters/observations.ts';
import type { Store } from '../../store/engine/index.ts';
import { findOrganization } from '../../store/organizations/organizations.ts';
import type { Lead } from '../../store/servers/leader.ts';
import type { Secrets } from '../../store/servers/secrets.ts';
import type { KubernetesDriver, SlurmDriver } from '../../sync/index.ts';
import type { SharedKnownHosts } from '../../sync/slurm/known-hosts.ts';
import type { Config } from '../config/index.ts';
import type { Parts } from './parts.ts';

/** The claim that API servers take as username, and the issuer of the tokens. */
function usernameRule({ identity }: Config) {
  return {
    claim: identity.kubernetes?.usernameClaim ?? 'email',
    issuer: identity.issuer ?? identity.embedded.url,
  };
}

type DriverDeps = Pick<Parts, 'config' | 'keys' | 'store' | 'peers' | 'log'> & {
  gatewayKeys(): readonly string[];
  endSessions(loginNode: string): void;
};

/** The issuer if API servers know people by its subjects; undefined where they use another claim. */
export function subjectIssuer(config: Config): string | undefined {
  const { claim, issuer } = usernameRule(config);
  return claim === 'sub' ? issuer : undefined;
}

/** The driver of a cluster's Kubernetes side; `wake` is called when something there changed by itself. */
export async function createKubernetesSide(
  cluster: Cluster,
  wake: () => void,
  { config, store, confirm, log }: Pick<DriverDeps, 'config' | 'store' | 'log'> & Pick<Lead, 'confirm'>,
): Promise<KubernetesDriver> {
  const { kubernetes: settings } = cluster.driver;
  if (!settings) {
    const { createSimulatedKubernetesDriver } = await import('../../sync/simulated/index.ts');
    const scheduler = cluster.scheduler === 'sunk' ? null : cluster.scheduler;
    const options = simulatedOptions(cluster, config, store);
    return createSimulatedKubernetesDriver({ name: cluster.name, scheduler, ...options });
  }
  const { createKubernetesDriver } = await import('../../sync/kubernetes/index.ts');
  const about = { clusterId: cluster.id, name: cluster.name, settings, rule: usernameRule(config) };
  return createKubernetesDriver({ ...about, wake, confirm, log });
}

export async function createSlurmSide(cluster: Cluster, lead: Lead, deps: DriverDeps): Promise<SlurmDriver> {
  const { config, keys, store, peers, endSessions, log } = deps;
  const { secrets } = keys;
  const { slurm: settings } = cluster.driver;
  if (!settings) return simulatedSlurm(cluster, deps);
  const { createSlurmDriver, openHostRecord } = await import('../../sync/slurm/index.ts');
  const organization = await findOrganization(store.read, cluster.organizationId);
  if (!organization) throw new Error(`the organization of cluster ${cluster.name} is gone from the database`);
  return createSlurmDriver({
    name: cluster.name,
    clusterId: cluster.id,
    organization: organization.slug,
    settings,
    dataDir: join(config.dataDir, 'clusters', cluster.id),
    last: (await findObservation(store.read, cluster.id, 'slurm'))?.report,
    knownHosts: secrets && sharedKnownHosts(secrets, cluster.id, lead.store),
    fence: lead.token,
    requireTime: lead.requireTime,
    gateway: { ...config.gateway, url: config.console?.url ?? `${config.platform.url}/download` },
    // Every server must know which hosts Andromeda has changed.
    record: await peers.forOthers(() => openHostRecord(lead.store, cluster.id)),
    endSessions,
    log,
  });
}

/** The host keys of a cluster: public, but kept among the secrets so that write access to the database cannot replace them. */
function sharedKnownHosts(secrets: Secrets, clusterId: string, by: Store): SharedKnownHosts {
  const name = knownHostsName(clusterId);
  return {
    read: async () => (await secrets.find(name)) ?? '',
    async add(alias, lines) {
      await secrets.change(name, (text = '') => (isKnown(text, alias) ? undefined : text + lines), by);
    },
  };
}

function isKnown(text: string, alias: string): boolean {
  return text.split('\n').some((line) => line.startsWith(`${alias} `));
}

function simulatedOptions(cluster: Cluster, config: Config, store: Store) {
  return {
    async settings() {
      const { driver } = (await findCluster(store.read, cluster.id)) ?? cluster;
      const { simulated } = driver;
      return simulated ?? { computeNodes: 0, gpusPerNode: 0 };
    },
    dataDir: join(config.dataDir, 'clusters', cluster.id),
  };
}

/** A message why a simulated Slurm side gets no login node; undefined where it gets one. */
async function refusalOfLoginNode(
  { name }: Cluster,
  config: Config,
  log: Logger,
): Promise<string | undefined> {
  const weakness = config.demo ? undefined : await weaknessOfLoginNodes();
  if (weakness === undefined) return undefined;
  if (config.clusters.unsafeSimulatedLogins) {
    const message = `There is little between this service and a simulated login node: ${weakness}.`;
    log.warn('simulated.unsafe', { cluster: name, message });
    return undefined;
  }
  const refusal = `There is no login node: ${weakness}. Where nobody can do harm with that, set clusters.unsafeSimulatedLogins: true in the configuration; otherwise run the service as root on a machine that gives it namespaces.`;
  log.warn('simulated.login_node_refused', { cluster: name, message: refusal });
  return refusal;
}

/** The access that sessions have to the service here, as a clause; undefined where its login nodes are isolated from it. */
async function weaknessOfLoginNodes(): Promise<string | undefined> {
  if (process.getuid?.() !== 0)
    return "this service is not root, so its sessions run as the service's own account, which can read the service's keys and database";
  const { findObstacle } = await import('../../sync/simulated/login-node/sandbox.ts');
  const obstacle = await findObstacle();
  return (
    obstacle &&
    `this machine gives the service no namespaces (${obstacle}), so its sessions reach whatever listens here`
  );
}

async function simulatedSlurm(
  cluster: Cluster,
  { config, store, gatewayKeys, endSessions, log }: DriverDeps,
): Promise<SlurmDriver> {
  const { createSimulatedSlurmDriver } = await import('../../sync/simulated/index.ts');
  const loginNodeRefusal = await refusalOfLoginNode(cluster, config, log);
  return createSimulatedSlurmDriver({
    name: cluster.name,
    ...simulatedOptions(cluster, config, store),
    loginNodeRefusal,
    // Without root, no account on the host is made with its UID.
    findOwners: async (accounts) => (process.getuid?.() === 0 ? findHostOwners(accounts) : new Map()),
    log,
    async startLoginNode(dataDir, accounts) {
      const { openLoginNode } = await import('../../sync/simulated/login-node/index.ts');
      const node = await openLoginNode({
        dataDir: join(dataDir, 'login'),
        authorizedKeys: gatewayKeys,
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
        setJobs: (jobs, gpus) => node.setJobs(jobs, gpus),
        stop() {
          endSessions(`${node.host}:${node.port}`);
          return node.stop();
        },
      };
    },
  });
}

/** Reports our permissions at a cluster's API server. Throws `invalid_state` where the cluster has no API server that we know. */
export async function checkCluster(
  cluster: Cluster,
  { store, now }: { store: Store; now(): number },
): Promise<KubernetesCheck> {
  const { kubernetes } = cluster.driver;
  if (!kubernetes) {
    throw new DomainError(
      'invalid_state',
      `Cluster ${cluster.name} has no kubernetes section to be checked.`,
    );
  }
  const { checkKubernetes } = await import('../../sync/kubernetes/check.ts');
  const { grants } = await findKubernetesAccess(store, cluster, undefined, now());
  const roleIds = new Set(grants.flatMap(({ roleId }) => roleId ?? []));
  return checkKubernetes(kubernetes, [...roleIds].sort());
}

/** Reports what a cluster's hosts have. Throws `invalid_state` where the cluster has no Slurm hosts that we know. */
export async function surveyCluster(
  cluster: Cluster,
  names: readonly string[],
  { config, keys, store }: Pick<Parts, 'config' | 'keys' | 'store'>,
): Promise<ClusterSurvey> {
  const { slurm: settings } = cluster.driver;
  if (!settings) {
    throw new DomainError('invalid_state', `Cluster ${cluster.name} has no slurm section to be surveyed.`);
  }
  const { managerOf, surveySlurm } = await import('../../sync/slurm/survey.ts');
  const { mergeSurvey } = await import('../../domain/slurm/survey.ts');
  const { secrets } = keys;
  const organization = await findOrganization(store.read, cluster.organizationId);
  const hosts = await surveySlurm({
    clusterId: cluster.id,
    organization: organization?.slug ?? '',
    settings,
    names,
    dataDir: join(config.dataDir, 'clusters', cluster.id),
    knownHosts: secrets && sharedKnownHosts(secrets, cluster.id, store),
  });
  const gatewayKeys = allKeys(keys.of('client')).map(({ fingerprint }) => fingerprint);
  return mergeSurvey(hosts, { manager: managerOf(settings), gatewayKeys });
}
