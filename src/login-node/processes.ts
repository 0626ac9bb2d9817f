/**
 * Ends what sessions have started, also what they left behind in the background: everything in the login
 * node's mount namespace, or else everything whose environment names a connection to its port.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Place } from './place.ts';

const grace = 150;
const rounds = 20;

export interface Whose {
  place: Place;
  port: number;
  /** Left out: every account. */
  account?: { username: string; uid: number };
}

/** Asks the processes to go, then makes them. */
export async function endProcesses(whose: Whose): Promise<void> {
  if (signalAll(whose, 'SIGHUP') === 0) return;
  signalAll(whose, 'SIGCONT');
  await sleep(grace);
  // One process may start another while we look: look again until there is none.
  for (let round = 0; round < rounds && signalAll(whose, 'SIGKILL') > 0; round++) await sleep(10);
}

function signalAll(whose: Whose, signal: NodeJS.Signals): number {
  let found = 0;
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid || !belongs(pid, whose)) continue;
    try {
      process.kill(pid, signal);
      found += 1;
    } catch {
      // It has ended in the meantime.
    }
  }
  return found;
}

function belongs(pid: number, { place, port, account }: Whose): boolean {
  try {
    if (place.kind === 'namespace') {
      if (readlinkSync(`/proc/${pid}/ns/mnt`) !== place.id) return false;
      return !account || statSync(`/proc/${pid}`).uid === account.uid;
    }
    const environment = `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`;
    if (
      !environment.includes(` 127.0.0.1 ${port}\0`) ||
      !environment.includes('\0SSH_CONNECTION=127.0.0.1 ')
    ) {
      return false;
    }
    return !account || environment.includes(`\0USER=${account.username}\0`);
  } catch {
    // Somebody else's process, or one that has just ended.
    return false;
  }
}
