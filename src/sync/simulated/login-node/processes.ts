/**
 * Kills what sessions have started, also in the background. For a removed account: every process with its uid in any of
 * Linux's four uid fields. Without root everyone has the same uid: then the processes whose environment names a connection to
 * the login node's port. In namespaces the kernel does the rest.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { listProcesses, readProcess, uidsOf } from '../../../lib/host-ids.ts';
import { asAccount, type Sandbox, systemPath } from './sandbox.ts';

const rounds = 40;
/** After this many rounds only processes remain that fork faster than they can be found. */
const quickRounds = 10;

type AccountIds = { username: string; uid: number; gid: number };

/** Kills all processes of an account. Throws when some remain. */
export function endAccount(
  { sandbox, port }: { sandbox: Sandbox; port: number },
  account: AccountIds,
): Promise<void> {
  if (sandbox === 'self') return endProcesses(port, account.username);
  return endAll(
    (pid) => uidsOf(pid).includes(account.uid),
    () => endNumber(sandbox, account),
  );
}

/** Kills the processes of connections to a port, of all users or of one username. Throws when some remain. */
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
    // A process may fork during the search: repeat until none is found.
    if (round === rounds) throw new Error('Processes of accounts that must go cannot be ended.');
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process has exited meanwhile.
      }
    }
    if (round >= quickRounds) await help?.();
    await sleep(10);
  }
}

/** The kernel kills all processes of a uid at once. `prlimit` lets this one start when the account is at its process limit. */
async function endNumber(sandbox: Sandbox, account: AccountIds): Promise<void> {
  const kill = { file: '/bin/sh', args: ['-c', 'kill -KILL -1'], env: { PATH: systemPath } };
  const { file, args, env } = asAccount(sandbox, account, kill);
  const child = spawn('prlimit', ['--nproc=unlimited', '--', file, ...args], { env, stdio: 'ignore' });
  await once(child, 'close').catch(() => undefined);
}
