/** What a side of a cluster reported last, as it is kept. */
import type { SideReport, SlurmReport } from './manifest.ts';
import type { Side } from './side.ts';

/** The part of a Slurm report that is kept whole: everything but the accounts. */
export type KeptSlurmReport = Omit<SlurmReport, 'accounts'>;

export interface Observation<S extends Side = Side> {
  /** In ms since 1970. */
  observedAt: number;
  /** The accepted list that is in force there; 0 before the first, and where there is none. */
  manifestGeneration: number;
  desiredGeneration: number;
  /** The version of the organization's list that its accounts are of; 0: of none. */
  listVersion: number;
  /** In words, what must be mended there by a person; null when nothing must. */
  failure: string | null;
  report: S extends 'slurm' ? KeptSlurmReport : SideReport;
}
