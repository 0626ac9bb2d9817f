/** The executable that `npm run build` makes. */
import { execFile } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { limit } from './limit.ts';
import { programFile } from './program.ts';

const build = join(import.meta.dirname, '../../scripts/build/main.ts');

/** Builds one of its own. `options`: further ones of the build. */
export async function buildExecutable(out: string, options: readonly string[] = []): Promise<void> {
  await promisify(execFile)(process.execPath, [build, '--out', out, ...options], { timeout: limit(240_000) });
}

/** Puts the run's there; where this file runs by itself, builds it. */
export async function placeExecutable(out: string): Promise<void> {
  if (programFile.isBuilt) copyFileSync(programFile.path, out);
  else await buildExecutable(out);
}
