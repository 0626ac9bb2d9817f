import type { Manifest, Report } from '../domain/manifest.ts';

/** The code that makes a manifest true on one cluster, and says what is true there. */
export interface Driver {
  /**
   * What the cluster is like now, asked of the cluster itself. Throws when it cannot be reached, in which case
   * nothing is recorded and the last report ages. May be asked while `apply` is under way.
   */
  observe(signal: AbortSignal): Promise<Report>;
  /**
   * Makes people's Kubernetes permissions as they should be at this moment; also while `apply` is under way. What
   * stands in the way is in the next report. Left out where there are none.
   */
  permit?(signal: AbortSignal): Promise<void>;
  /** Makes the manifest so. May be called again with the same one, and after having been cut off half-way. */
  apply(manifest: Manifest, signal: AbortSignal): Promise<void>;
  /**
   * Takes away what we put there, and nothing else; homes stay. May be called again, and where nothing of ours is
   * left. Throws, in words for a person, when something is left that must go.
   */
  release(signal: AbortSignal): Promise<void>;
  /** Lets go of the cluster; changes nothing there. */
  close(): Promise<void>;
  /** Whether it takes up changed settings by itself; another is made anew when its settings change. */
  readonly followsSettings?: boolean;
  /** How long to wait for more changes when one comes, because applying one disturbs people as much as applying many. */
  readonly gatherMs?: number;
}
