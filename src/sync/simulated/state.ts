/**
 * The state of a simulated cluster on disk, each file replaced whole: what is in force there, which is short, and its login
 * accounts, which can be thousands and are read only when they are needed.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ManifestAccount } from '../../domain/access/manifest.ts';
import { homeOf } from '../../domain/people/username.ts';
import type { SlurmConfiguration } from '../../domain/slurm/configuration.ts';
import type { Foreign } from './foreign.ts';

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
  /** As an earlier version wrote them, before lists had versions. */
  accounts?: ManifestAccount[];
}

/** An account that someone can log in to. */
export type LoginAccount = Pick<
  ManifestAccount,
  'username' | 'uid' | 'gid' | 'home' | 'shell' | 'loginState'
>;

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
  try {
    return { ...fresh, ...(JSON.parse(readFileSync(join(dataDir, stateFile), 'utf8')) as SimulatedState) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { ...fresh };
    throw error;
  }
}

export async function writeState(dataDir: string, state: SimulatedState): Promise<void> {
  await replaceFile(join(dataDir, stateFile), JSON.stringify(state));
}

/** A person without an active key has no usable account. */
export function isReady({ loginState }: LoginAccount): boolean {
  return loginState === 'ready';
}

/** Those who can log in there. */
export async function readLogins(dataDir: string): Promise<LoginAccount[]> {
  const text = await readFile(join(dataDir, loginsFile), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) {
    return (readState(dataDir).accounts ?? []).filter(isReady);
  }
  const rows = JSON.parse(text) as [string, number, string][];
  return rows.map(([username, uid, shell]) => {
    return { username, uid, gid: uid, home: homeOf(username), shell, loginState: 'ready' };
  });
}

/** What the file of those who can log in says of them. */
export function textOf(logins: readonly LoginAccount[]): string {
  return JSON.stringify(logins.map(({ username, uid, shell }) => [username, uid, shell]));
}

export async function writeLogins(dataDir: string, logins: readonly LoginAccount[]): Promise<void> {
  await replaceFile(join(dataDir, loginsFile), textOf(logins));
}

/** Deletes everything but the homes; returns the state of a new cluster. */
export async function forgetState(dataDir: string): Promise<SimulatedState> {
  for (const file of [stateFile, loginsFile]) await rm(join(dataDir, file), { force: true });
  return { ...fresh };
}

async function replaceFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
