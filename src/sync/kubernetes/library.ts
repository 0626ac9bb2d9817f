/** The connections of the official client library, in a module of their own: loading takes tens of megabytes and hundreds of ms. */
export { KubeConfig } from '@kubernetes/client-node';
