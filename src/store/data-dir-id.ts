/** Which data directory a server has: exact, since whoever had the same one before is taken to have ended. */
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';

/**
 * The same for two servers only where both run, one after the other, under the same kernel in the same directory, which the
 * lock in it keeps for one at a time. A copy of a directory, or of a machine, is another one.
 */
export function dataDirId(dataDir: string): string {
  try {
    const { dev, ino } = statSync(dataDir, { bigint: true });
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return createHash('sha256').update(`${boot} ${dev} ${ino}`).digest('hex').slice(0, 32);
  } catch {
    // Then the one before is waited for.
    return randomUUID();
  }
}
