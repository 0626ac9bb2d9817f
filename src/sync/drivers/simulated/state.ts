/** What a simulated cluster remembers, in one file that is replaced whole. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ManifestAccount } from '../../../domain/manifest.ts';

export interface SimulatedState {
  manifestGeneration: number;
  desiredGeneration: number;
  accounts: ManifestAccount[];
}

const fresh: SimulatedState = { manifestGeneration: 0, desiredGeneration: 0, accounts: [] };

/** The state as last written; a new cluster's where there is none. */
export function readState(dataDir: string): SimulatedState {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'simulated.json'), 'utf8')) as SimulatedState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return fresh;
    throw error;
  }
}

export function writeState(dataDir: string, state: SimulatedState): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  const file = join(dataDir, 'simulated.json');
  writeFileSync(`${file}.new`, JSON.stringify(state), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
