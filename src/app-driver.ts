/** A part of the composition root: the drivers of clusters. */
import { join } from 'node:path';
import type { Config } from './config.ts';
import type { Logger } from './log.ts';
import { type Cluster, findCluster } from './store/clusters.ts';
import type { Store } from './store/index.ts';
import type { Driver } from './sync/index.ts';

/** The driver that a cluster's settings ask for, with what it needs of other rooms. */
export async function createDriver(
  cluster: Cluster,
  deps: {
    config: Config;
    store: Store;
    gatewayKey: string;
    endSessions(loginNode: string): void;
    log: Logger;
  },
): Promise<Driver> {
  const { config, store, gatewayKey, endSessions, log } = deps;
  const { createSimulatedDriver } = await import('./sync/drivers/simulated/index.ts');
  return createSimulatedDriver({
    name: cluster.name,
    scheduler: cluster.scheduler,
    settings: async () =>
      JSON.parse((await findCluster(store.read, cluster.id))?.driver ?? cluster.driver).simulated,
    dataDir: join(config.dataDir, 'clusters', cluster.id),
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
