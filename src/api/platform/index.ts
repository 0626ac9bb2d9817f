/**
 * The operations of the Platform API, one function an `operationId` of openapi/platform.yaml, a file a resource.
 * Owns what the API answers and refuses about running clusters; knows nothing of HTTP and of Business.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads of `store`, and for Slurm configurations
 * one write.
 */
import type { OperationsOf } from '../../domain/operation.ts';
import type { operations } from '../generated/platform.ts';
import { getCluster, listClusters } from './clusters.ts';
import { getProtectedResource } from './discovery.ts';
import { getKubeconfig } from './kubeconfig.ts';
import { getClusterUsage, listMachines } from './machines.ts';
import type { PlatformDeps } from './operation.ts';
import { getClusterOptions } from './options.ts';
import {
  getDefaultSchedulerConfiguration,
  getSchedulerConfiguration,
  setDefaultSchedulerConfiguration,
  setSchedulerConfiguration,
} from './slurm-configurations.ts';
import {
  checkSchedulerConfiguration,
  getSchedulerConfigurationStatus,
  getSchedulerConfigurationVersion,
  listSchedulerConfigurationVersions,
} from './slurm-history.ts';
import { getSshAccess } from './ssh-access.ts';
import { listStorage } from './storage.ts';

export const platformOperations = {
  getProtectedResource,
  listClusters,
  getCluster,
  getClusterOptions,
  listMachines,
  getClusterUsage,
  getSshAccess,
  getKubeconfig,
  getSchedulerConfiguration,
  setSchedulerConfiguration,
  checkSchedulerConfiguration,
  getSchedulerConfigurationStatus,
  listSchedulerConfigurationVersions,
  getSchedulerConfigurationVersion,
  getDefaultSchedulerConfiguration,
  setDefaultSchedulerConfiguration,
  listStorage,
} satisfies OperationsOf<operations, PlatformDeps>;
