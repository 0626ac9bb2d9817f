/**
 * The operations of the Platform API, one function an `operationId` of openapi/platform.yaml, a file a resource.
 * Owns what the API answers and refuses about running clusters; knows nothing of HTTP and of Business.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads of `store`, and for Slurm configurations
 * one write.
 */
export { getCluster, listClusters } from './clusters.ts';
export { getKubeconfig, getProtectedResource, getSshAccess } from './connect.ts';
export { getClusterUsage, listMachines } from './machines.ts';
export { getClusterOptions, listStorage } from './options.ts';
export {
  getDefaultSchedulerConfiguration,
  getSchedulerConfiguration,
  setDefaultSchedulerConfiguration,
  setSchedulerConfiguration,
} from './slurm-configurations.ts';
export {
  checkSchedulerConfiguration,
  getSchedulerConfigurationStatus,
  getSchedulerConfigurationVersion,
  listSchedulerConfigurationVersions,
} from './slurm-history.ts';
