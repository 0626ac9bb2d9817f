/**
 * The state of a simulated cluster on disk, each file replaced whole: what is in force there, which is short, and its login
 * accounts, which can be thousands and are read only when they are needed.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SlurmConfiguration } from '../../domain/slurm/configuration.ts';
import { messageOf } from '../../lib/error-message.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import type { Foreign } from './foreign.ts';
import type { Account } from './login-node/messages.ts';

export interface SimulatedState {
  manifestGeneration: number;
  desiredGeneration: number;
  listVersion: number;
  slurmConfiguration: SlurmConfiguration;
  /** Its compute nodes have restarted, and what ran on them is gone. */
  jobsEnded: boolean;
  /** When it first started, in ms since 1970; 0 before that. */
  startedAt: number;
  foreign?: Foreign;
}

const fresh: Readonly<SimulatedState> = {
  manifestGeneration: 0,
  desiredGeneration: 0,
  listVersion: 0,
  slurmConfiguration: {},
  jobsEnded: false,
  startedAt: 0,
};

const stateFile = 'simulated.json';
const loginsFile = 'logins.json';

/** The state as last written; a new cluster's where there is none. */
export function readState(dataDir: string): SimulatedState {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  return { ...fresh, ...read<Partial<SimulatedState>>(dataDir, stateFile) };
}

export function writeState(dataDir: string, state: SimulatedState): void {
  writeWhole(join(dataDir, stateFile), JSON.stringify(state));
}

export function readLogins(dataDir: string): Account[] {
  const rows = read<[string, number, string][]>(dataDir, loginsFile) ?? [];
  return rows.map(([username, uid, shell]) => ({ username, uid, gid: uid, shell }));
}

/** What the file of those who can log in says of them. */
export function textOf(logins: readonly Account[]): string {
  return JSON.stringify(logins.map(({ username, uid, shell }) => [username, uid, shell]));
}

export function writeLogins(dataDir: string, logins: readonly Account[]): void {
  writeWhole(join(dataDir, loginsFile), textOf(logins));
}

/** Deletes everything but the homes; returns the state of a new cluster. */
export function forgetState(dataDir: string): SimulatedState {
  for (const file of [stateFile, loginsFile]) rmSync(join(dataDir, file), { force: true });
  return { ...fresh };
}

function read<T>(dataDir: string, file: string): T | undefined {
  const path = join(dataDir, file);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read: ${messageOf(error)}. Move it away to have a new one.`, {
      cause: error,
    });
  }
}
