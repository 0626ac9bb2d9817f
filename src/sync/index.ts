/**
 * The sync loop: brings every cluster to the state that the database wants, and keeps it there. The unit of work is one
 * side (Slurm or Kubernetes) of one cluster: each has a worker with its own back-off, reports and faults, so that neither
 * waits for the other. Owns which workers there are (`loop.ts`), when one runs (`worker.ts`), what a pass does (`slurm-pass.ts`,
 * `kubernetes-pass.ts`) and the code for each kind of cluster (`slurm/`, `kubernetes/`, `simulated/`). Decides nothing about who has
 * access: that is computed in `store` and `domain` from what people did.
 *
 * Level-triggered: any cause, a change or the clock, runs the same pass, and a lost notice costs one interval.
 */
export type { KubernetesDriver, SlurmDriver } from './driver.ts';
export { hearPasses, type SyncLoop, startSyncLoop } from './loop/loop.ts';
