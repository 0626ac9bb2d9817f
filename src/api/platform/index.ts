/**
 * The operations of the Platform API, one function an `operationId` of openapi/platform.yaml, a file a resource.
 * Owns the API's replies and refusals about running clusters; knows nothing of HTTP and of Business.
 *
 * Flow: `http` checks and authenticates a request → an operation here → reads of `store`, and for Slurm configurations
 * one write.
 */
export * from './clusters.ts';
export * from './connect.ts';
export { listGpuHours } from './gpu-hours.ts';
export * from './machines.ts';
export { getClusterOptions, listStorage } from './options.ts';
export * from './slurm-configurations.ts';
