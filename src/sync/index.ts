/**
 * The sync loop: keeps every cluster as the present truth says it should be. Owns when a cluster is looked at
 * (`loop.ts`), what one look does (`reconcile.ts`) and the code for each kind of cluster (`drivers/`). Decides nothing
 * about who has access: that is computed in `store` and `domain` from what people did.
 *
 * Level-triggered: any cause, a change or the clock, runs the same pass, and a lost notice costs one interval.
 */
export type { Driver } from './driver.ts';
export { type SyncLoop, startSyncLoop } from './loop.ts';
