/**
 * The state of a simulated cluster on disk, each file replaced whole: the short state in force, and the login accounts, which
 * can be thousands and are read only when needed.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SlurmConfiguration } from '../../domain/slurm/configuration.ts';
import { messageOf } from '../../lib/error-message.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import type { ForeignAccounts } from './foreign.ts';
import type { Account } from './login-node/messages.ts';

export interface SimulatedState {
  manifestGeneration: number;
  desiredGeneration: number;
  listVersion: number;
  slurmConfiguration: SlurmConfiguration;
  /** The compute nodes have restarted, which ended their jobs. */
  jobsEnded: boolean;
  /** Time of the first start, in ms since 1970; 0 before that. */
  startedAt: number;
  foreign?: ForeignAccounts;
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

/** Returns the last written state; that of a new cluster when there is none. */
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

/** The content of the file of login accounts. */
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
