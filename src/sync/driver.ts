import type { Manifest, Report } from '../domain/manifest.ts';

/** The code that makes a manifest true on one cluster, and says what is true there. */
export interface Driver {
  /**
   * What the cluster is like now, asked of the cluster itself. Throws when it cannot be reached, in which case
   * nothing is recorded and the last report ages.
   */
  observe(signal: AbortSignal): Promise<Report>;
  /** Makes the manifest so. May be called again with the same one, and after having been cut off half-way. */
  apply(manifest: Manifest, signal: AbortSignal): Promise<void>;
  /** Lets go of the cluster; changes nothing there. */
  close(): Promise<void>;
}
