/** State of the service itself that is not in the database: keys, backups, faults. Times in RFC 3339. */
import type { Side } from './clusters/cluster.ts';

/** The schedule and failures of the sync passes over a side of a cluster. Times in ms since 1970. */
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
  /** Undefined: no scheduled backups. `nextAt`: the time of the next backup, or of the retry of the command that failed after the last. */
  schedule: { to: string; everyMs: number; dueAt: string; nextAt: string } | undefined;
  /** The newest backup, scheduled or made by hand. */
  last: { at: string; file: string; bytes: number } | undefined;
  /** The newest scheduled backup in its final storage, read back and verified. */
  kept: { at: string; file: string; bytes: number } | undefined;
  /** `file`: the backup that was made, where only the command after it failed. */
  failure: { at: string; failures: number; message: string; file?: string } | undefined;
  drill: { at: string; file: string; isGood: boolean } | undefined;
}

/** A fault that a person must mend now or soon. */
export interface Problem {
  area: 'cluster' | 'gateway' | 'backup' | 'certificate' | 'disk' | 'audit' | 'server' | 'identity';
  /** The subject, such as the name of a cluster. */
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
