/** The code for one side of one cluster: applies the wanted state there, and reports the present one. */
import type { KubernetesSideReport, Manifest, SlurmReport } from '../domain/access/manifest.ts';
import type { KubernetesAccess } from '../domain/kubernetes/bindings.ts';

interface SideDriver<Desired, Report, Outcome> {
  /**
   * The present state, as the cluster itself reports it. Throws when it cannot be reached; the last report ages then.
   * May be asked while `apply` is under way. `superseded` as below: then it waits for nothing that a change does not need.
   */
  observe(signal: AbortSignal, superseded?: AbortSignal): Promise<Report>;
  /**
   * Applies the wanted state. May be called again with the same, and after an `apply` that was aborted half-way. `superseded` is
   * aborted when something newer is wanted: what takes long is then left for later.
   */
  apply(desired: Desired, signal: AbortSignal, superseded?: AbortSignal): Promise<Outcome>;
  /**
   * Removes what the driver put there, and nothing else; homes stay. May be called again, and where nothing of ours is
   * left. Throws a message for a person when something is left that must go.
   */
  release(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
  /** Whether it takes up changed settings by itself; another is made anew when its settings change. */
  readonly followsSettings: boolean;
  /** How long to wait for more changes when one comes, because applying one disturbs people as much as applying many. */
  readonly gatherMs: number;
}

/** What keeps a manifest from being applied is in the next report. */
export type SlurmDriver = SideDriver<Manifest, SlurmReport, void>;

export interface KubernetesOutcome {
  /** A message that names what keeps them from being as they should be; null when nothing does. */
  failure: string | null;
  /** Whether trying again soon may help: a conflict or trouble at the server, and no missing right. */
  retry: boolean;
  /** The IDs of the permissions that are in force; undefined where that could not be asked. */
  bound: readonly string[] | undefined;
}

/** It is handed what people hold at this moment. Its outcome is undefined where `superseded` was aborted before there was one. */
export type KubernetesDriver = SideDriver<
  KubernetesAccess,
  KubernetesSideReport,
  KubernetesOutcome | undefined
>;
