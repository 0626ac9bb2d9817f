/** State of the service itself that is not in the database: keys, backups, faults. Times in RFC 3339. */
import type { Side } from './clusters/side.ts';
import type { KeyKind } from './key-rotation.ts';

/** How the passes over a side of a cluster go. Times in ms since 1970. */
export interface SidePasses {
  /** When the next one is; undefined while one is under way. */
  nextAt: number | undefined;
  /** How many failed in a row. */
  failures: number;
  failingSince: number | undefined;
}

export interface ServiceKey {
  /** A fingerprint, or the `kid` of a token. */
  id: string;
  /** The public key in OpenSSH format, where login nodes or clients may need it. */
  line?: string | undefined;
  /** Since when the service has had it in this place. */
  since?: string | undefined;
}

/** One of the service's keys, and what takes its place or was there before. */
export interface ServiceKeys {
  kind: KeyKind;
  current: ServiceKey;
  next?: ServiceKey | undefined;
  previous?: ServiceKey | undefined;
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
  /** The last rehearsal of a restore. */
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
  /** The one thing to do. */
  action: string;
  nextTryAt?: string | undefined;
}

/** Newest first; what has no beginning comes last. */
export function inOrderOfUrgency(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => (b.since ?? '').localeCompare(a.since ?? ''));
}

/** The command that takes the next step with a key, and what has to be so before. */
export function nextKeyStep({ kind, next, previous }: ServiceKeys): { command: string; advice: string } {
  const command = (step: string) => `andromeda admin key ${step} ${kind}`;
  if (next) return { command: command('switch'), advice: adviceToSwitch[kind] };
  if (previous)
    return {
      command: command('retire'),
      advice: 'When all is well with the key in use: from then on the one before holds no more.',
    };
  return {
    command: command('announce'),
    advice: 'Makes the next key and announces it. The one in use goes on, and nothing is switched yet.',
  };
}

const adviceToSwitch: Record<KeyKind, string> = {
  host: 'When everybody has logged in once since it was announced: clients learn it then (UpdateHostKeys).',
  client: 'When its line is beside the old one wherever login nodes keep the key of the gateway.',
  issuer: 'At any time after a reload: it is published beside the one in use.',
};
