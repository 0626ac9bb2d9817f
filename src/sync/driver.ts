/** The code for one side of one cluster: applies the wanted state there, and reports the present one. */
import type { ReleasedAccounts } from '../domain/access/adopted.ts';
import type { KubernetesSideReport, Manifest, SlurmReport } from '../domain/access/manifest.ts';
import type { KubernetesAccess } from '../domain/kubernetes/bindings.ts';

interface SideDriver<Desired, Report, Outcome> {
  /**
   * Returns the present state, as the cluster reports it. Throws when the cluster cannot be reached; the last report then
   * ages. May be called during `apply`. `superseded` as in `apply`: once aborted, waits only for what a change needs.
   */
  observe(signal: AbortSignal, superseded?: AbortSignal): Promise<Report>;
  /**
   * Applies the wanted state. Idempotent, also after an `apply` that was aborted half-way. `superseded` is aborted when a
   * newer state is wanted: slow steps are then left to a later call.
   */
  apply(desired: Desired, signal: AbortSignal, superseded?: AbortSignal): Promise<Outcome>;
  /**
   * Removes what the driver put there, and nothing else; homes stay. Idempotent. Throws a message for a person when something
   * is left that must be removed.
   */
  release(signal: AbortSignal, adopted?: ReleasedAccounts): Promise<void>;
  close(): Promise<void>;
  /** Whether the driver applies changed settings by itself; otherwise it is closed and created again. */
  readonly followsSettings: boolean;
  /** How long to gather further changes after the first: applying one disturbs people as much as applying many. */
  readonly gatherMs: number;
}

/** A failure to apply the manifest is in the next report. */
export type SlurmDriver = SideDriver<Manifest, SlurmReport, void>;

export interface KubernetesOutcome {
  /** A message that names the obstacles to the wanted permissions; null when there are none. */
  failure: string | null;
  /** Whether a retry soon may help: after a conflict or a server fault, not after a missing right. */
  retry: boolean;
  /** The IDs of the permissions that are in force; undefined where the bindings could not be listed. */
  bound: readonly string[] | undefined;
}

/** Applies the permissions that people have now. The outcome is undefined if `superseded` was aborted before it was known. */
export type KubernetesDriver = SideDriver<
  KubernetesAccess,
  KubernetesSideReport,
  KubernetesOutcome | undefined
>;
