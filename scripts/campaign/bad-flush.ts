/** Bad disks for a process that is started: flushes that do nothing, or take longer (flush.c). Needs a C compiler. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Why there are none here, as a clause; undefined where there are. */
export function whyNoBadFlush(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has LD_PRELOAD';
  return spawnSync('cc', ['--version']).error ? 'there is no C compiler' : undefined;
}

/** The environment of a process whose flushes do nothing (`none`), or take so many ms longer; compiled into `dir`. */
export function badFlush(dir: string, flush: string): Record<string, string> {
  const library = join(dir, 'flush.so');
  const source = join(import.meta.dirname, 'flush.c');
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source], { stdio: 'inherit' });
  return { LD_PRELOAD: library, FLUSH: flush };
}
