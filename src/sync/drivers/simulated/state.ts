/**
 * The state of a simulated cluster on disk, each file replaced whole: what is in force there, which is short, and its login
 * accounts, which can be thousands and are read only when they are needed.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ManifestAccount } from '../../../domain/manifest.ts';
import type { SlurmConfiguration } from '../../../domain/slurm-configuration.ts';
import { homeOf } from '../../../domain/username.ts';
import { yieldToEventLoop } from '../../../lib/event-loop.ts';
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
export type LoginAccount = Pick<ManifestAccount, 'username' | 'uid' | 'gid' | 'home' | 'shell'>;

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

/** What a cluster knows of an account that it may or may not let in. */
export type KnownAccount = LoginAccount & Pick<ManifestAccount, 'loginState'>;

/** A cache of the last file that was read, as all clusters of an organization have the same. */
let latest: { text: string; accounts: WeakRef<readonly KnownAccount[]> } | undefined;

/** Those who can log in there. */
export async function readLogins(dataDir: string): Promise<readonly KnownAccount[]> {
  const text = await readFile(join(dataDir, loginsFile), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) {
    return (readState(dataDir).accounts ?? []).filter(({ loginState }) => loginState === 'ready');
  }
  await yieldToEventLoop();
  const known = latest?.text === text ? latest.accounts.deref() : undefined;
  if (known) return known;
  const rows = JSON.parse(text) as [string, number, string][];
  const accounts = rows.map(([username, uid, shell]) => {
    return { username, uid, gid: uid, home: homeOf(username), shell, loginState: 'ready' as const };
  });
  latest = { text, accounts: new WeakRef(accounts) };
  return accounts;
}

/** Those who can log in, and the file that says so. */
export interface Logins {
  accounts: readonly LoginAccount[];
  text: string;
}

export function loginsOf(accounts: readonly LoginAccount[]): Logins {
  const rows = accounts.map(({ username, uid, shell }) => [username, uid, shell]);
  return { accounts, text: JSON.stringify(rows) };
}

export async function writeLogins(dataDir: string, logins: Logins): Promise<void> {
  await replaceFile(join(dataDir, loginsFile), logins.text);
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
