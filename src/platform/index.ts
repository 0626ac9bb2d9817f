/**
 * The operations of the Platform API, one function an `operationId` of openapi/platform.yaml, a file a resource.
 * Owns what the API answers and refuses about running clusters; knows nothing of HTTP and of Business.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads of `store`, and for Slurm configurations
 * one write.
 */
import type { OperationType, ReplyOf, Request } from '../domain/operation.ts';
import type { Store } from '../store/index.ts';
import { getCluster, listClusters } from './clusters.ts';
import { getProtectedResource } from './discovery.ts';
import { getKubeconfig } from './kubeconfig.ts';
import { listMachines } from './machines.ts';
import type { operations } from './openapi.ts';
import { getClusterOptions } from './options.ts';
import {
  getDefaultSchedulerConfiguration,
  getSchedulerConfiguration,
  setDefaultSchedulerConfiguration,
  setSchedulerConfiguration,
} from './scheduler-configuration.ts';
import { getSshAccess } from './ssh-access.ts';
import { listStorage } from './storage.ts';

export const platformOperations = {
  getProtectedResource,
  listClusters,
  getCluster,
  getClusterOptions,
  listMachines,
  getSshAccess,
  getKubeconfig,
  getSchedulerConfiguration,
  setSchedulerConfiguration,
  getDefaultSchedulerConfiguration,
  setDefaultSchedulerConfiguration,
  listStorage,
};

/** The SSH gateway as people see it. */
export interface GatewayAddress {
  hostname: string;
  port: number;
  /** `ssh-ed25519 AAAA…` */
  hostKey: string;
  fingerprint: string;
}

/** What every operation here works with. */
export interface PlatformDeps {
  store: Store;
  gateway: GatewayAddress;
  /** What discovery tells (RFC 9728). */
  signIn: {
    platformUrl: string;
    businessUrl: string;
    issuer: string;
    audiences: readonly string[];
    cliClientId: string;
    /** Scopes to ask for where the issuer does not know the ones made from audiences. */
    scopes?: readonly string[] | undefined;
  };
  /** How people sign in to the clusters' Kubernetes APIs; undefined where that is not offered. */
  kubernetesLogin: { clientId: string; usernameClaim: string } | undefined;
}

export type PlatformRequest<Id extends keyof operations> = Request<operations[Id] & OperationType>;
export type PlatformReply<Id extends keyof operations> = ReplyOf<operations[Id] & OperationType>;
