/** What we use of the official client library: its connections. It takes tens of megabytes and hundreds of milliseconds to load. */
export { KubeConfig } from '@kubernetes/client-node';
