/**
 * What we use of the official client library: kubeconfigs, the ways to sign in, and its connections. Costs tens of
 * megabytes and hundreds of milliseconds to load, so only `client.ts` imports it, when a cluster has an API server.
 */
export { KubeConfig } from '@kubernetes/client-node';
