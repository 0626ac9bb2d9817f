/** The executable that `npm run build` makes, made once for all files of a run that want it: it takes many seconds. */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';

const build = join(import.meta.dirname, '../../scripts/build/main.ts');
/** Who builds it may have been ended half-way; then whoever waits builds one too. */
const patienceMs = 120_000;

/** Builds one of its own. `options`: further ones of the build. */
export async function buildExecutable(out: string, options: readonly string[] = []): Promise<void> {
  await promisify(execFile)(process.execPath, [build, '--out', out, ...options], { timeout: 240_000 });
}

/** Puts the run's there; where this file runs by itself, builds it. */
export async function placeExecutable(out: string): Promise<void> {
  const shared = process.env['ANDROMEDA_TEST_SHARED'];
  if (shared === undefined) return buildExecutable(out);
  const made = join(shared, 'andromeda');
  const building = join(shared, 'building');
  const until = Date.now() + patienceMs;
  while (!existsSync(made) && Date.now() < until) {
    if (!claim(building)) {
      await wait(100);
      continue;
    }
    try {
      // It is there when it is whole: the build renames it.
      await buildExecutable(made);
    } finally {
      rmdirSync(building);
    }
  }
  if (existsSync(made)) copyFileSync(made, out);
  else await buildExecutable(out);
}

/** Whether the directory was made here, and not by somebody else before. */
function claim(directory: string): boolean {
  try {
    mkdirSync(directory);
    return true;
  } catch {
    return false;
  }
}
