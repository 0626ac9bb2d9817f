/** State of the service itself that is not in the database: keys, backups, faults. Times in RFC 3339. */
import type { Side } from './clusters/cluster.ts';

/** How the passes over a side of a cluster go. Times in ms since 1970. */
export interface SidePasses {
  nextAt: number | undefined;
  failures: number;
  failingSince: number | undefined;
}

export interface ServiceKey {
  /** A fingerprint, the `kid` of a token, or the public key of the audit trail. */
  id: string;
  /** The public key in OpenSSH format, where login nodes or clients may need it. */
  line?: string;
}

export interface BackupState {
  /** Undefined: none are made by themselves. `nextAt`: when the next is made, or the command after the last tried again. */
  schedule: { to: string; everyMs: number; dueAt: string; nextAt: string } | undefined;
  /** However it was made. */
  last: { at: string; file: string; bytes: number } | undefined;
  /** By itself, where it is kept: it was read back whole. */
  kept: { at: string; file: string; bytes: number } | undefined;
  /** `file`: the backup that was made, where the command after it failed. */
  failure: { at: string; failures: number; message: string; file?: string } | undefined;
  drill: { at: string; file: string; isGood: boolean } | undefined;
}

/** Something that a person must mend, or soon will have to. */
export interface Problem {
  area: 'cluster' | 'gateway' | 'backup' | 'certificate' | 'disk' | 'audit' | 'server' | 'identity';
  /** What it is about, such as the name of a cluster. */
  about: string;
  clusterId?: string;
  side?: Side;
  urgency: 'now' | 'soon';
  since?: string | undefined;
  message: string;
  action: string;
  nextTryAt?: string | undefined;
}

export function inOrderOfUrgency(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => (b.since ?? '').localeCompare(a.since ?? ''));
}
