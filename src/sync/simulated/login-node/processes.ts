/**
 * Ends what sessions have started, also what they left behind in the background. When an account goes, that is every process with
 * its number in any of the four fields where Linux keeps it. Without root everybody has the same number, so that it is what has
 * an environment that names a connection to the login node's port. In namespaces the kernel does the rest.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { listProcesses, readProcess, uidsOf } from '../../../lib/host-ids.ts';
import { asAccount, type Sandbox, systemPath } from './sandbox.ts';

const rounds = 40;
/** So many searches end everything but what starts others faster than it can be found. */
const quickRounds = 10;

type Ids = { username: string; uid: number; gid: number };

/** Ends all that an account runs. Throws when something is left all the same. */
export function endAccount(
  { sandbox, port }: { sandbox: Sandbox; port: number },
  account: Ids,
): Promise<void> {
  if (sandbox === 'self') return endProcesses(port, account.username);
  return endAll(
    (pid) => uidsOf(pid).includes(account.uid),
    () => endNumber(sandbox, account),
  );
}

/** Ends what came by connections to a port, of everybody or of one user name. Throws when some are left all the same. */
export function endProcesses(port: number, username?: string): Promise<void> {
  return endAll((pid) => {
    const environment = `\0${readProcess(pid, 'environ')}`;
    return (
      environment.includes(` 127.0.0.1 ${port}\0`) &&
      environment.includes('\0SSH_CONNECTION=127.0.0.1 ') &&
      (username === undefined || environment.includes(`\0USER=${username}\0`)) &&
      uidsOf(pid).length > 0
    );
  });
}

async function endAll(belongs: (pid: number) => boolean, help?: () => Promise<void>): Promise<void> {
  for (let round = 0; ; round++) {
    const found = listProcesses().filter((pid) => pid !== process.pid && belongs(pid));
    if (found.length === 0) return;
    // One process may start another during the search: search again until there is none.
    if (round === rounds) throw new Error('Processes of accounts that must go cannot be ended.');
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended in the meantime.
      }
    }
    if (round >= quickRounds) await help?.();
    await sleep(10);
  }
}

/** The kernel ends all of a number at once. An account with as many processes as it may have has room for this one. */
async function endNumber(sandbox: Sandbox, account: Ids): Promise<void> {
  const kill = { file: '/bin/sh', args: ['-c', 'kill -KILL -1'], env: { PATH: systemPath } };
  const { file, args, env } = asAccount(sandbox, account, kill);
  const child = spawn('prlimit', ['--nproc=unlimited', '--', file, ...args], { env, stdio: 'ignore' });
  await once(child, 'close').catch(() => undefined);
}
