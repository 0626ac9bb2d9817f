/** The driver of one side of one cluster, for as long as the cluster's settings are the same. */
import { isDeepStrictEqual } from 'node:util';
import type { Cluster } from '../domain/cluster.ts';
import type { KubernetesDriver, SlurmDriver } from './driver.ts';

export class DriverHolder<D extends SlurmDriver | KubernetesDriver> {
  readonly #create: (cluster: Cluster) => Promise<D>;
  #held: { driver: D; cluster: Cluster } | undefined;

  constructor(create: (cluster: Cluster) => Promise<D>) {
    this.#create = create;
  }

  get driver(): D | undefined {
    return this.#held?.driver;
  }

  /** The driver for the cluster as it is now; one for other settings is closed first. */
  async open(cluster: Cluster): Promise<D> {
    if (this.#held && isOutdated(this.#held.driver, this.#held.cluster, cluster)) await this.close();
    this.#held ??= { cluster, driver: await this.#create(cluster) };
    return this.#held.driver;
  }

  async close(): Promise<void> {
    const before = this.#held;
    this.#held = undefined;
    await before?.driver.close();
  }
}

/** Whether a driver is no longer the one for its cluster. */
function isOutdated(driver: SlurmDriver | KubernetesDriver, before: Cluster, after: Cluster): boolean {
  const kinds = (cluster: Cluster) => Object.keys(cluster.driver).join();
  if (before.name !== after.name || before.scheduler !== after.scheduler) return true;
  return driver.followsSettings
    ? kinds(before) !== kinds(after)
    : !isDeepStrictEqual(before.driver, after.driver);
}
