/** A process of the program that makes one backup, or runs the command after it (`role.ts`), as the service and a command see it. */
import { spawn } from 'node:child_process';
import { backupArguments, inheritedEnvironment } from '../../lib/packaging.ts';
import type { BackupOutcome, BackupTask } from './role.ts';

/** What does not end when it is asked to is killed: a long check does not notice the request, and a command may have to remove a lock on another machine. */
const stopMs = { backup: 300, command: 2_000 };

/** Of our environment, which can have secrets, only what says who and where we are. */
const passedOn = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'TZ', 'TMPDIR'];

/**
 * Has a process of its own do it, at the head of a group of its own: all that it started ends with it. `ending` has it end before;
 * what then became of it is in no outcome.
 */
export async function runBackupTask(task: BackupTask, ending: AbortSignal): Promise<BackupOutcome> {
  const own = passedOn.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  const child = spawn(process.execPath, backupArguments(), {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    cwd: '/',
    detached: true,
    env: { ...Object.fromEntries(own), ...inheritedEnvironment() },
  });
  const kill = (signal: NodeJS.Signals) => child.pid !== undefined && killGroup(child.pid, signal);
  let lastOutput = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    lastOutput = (lastOutput + text).slice(-2_000);
  });
  let outcome: BackupOutcome | undefined;
  child.on('message', (message) => {
    outcome = message as BackupOutcome;
  });
  const stop = () => {
    kill('SIGTERM');
    setTimeout(() => kill('SIGKILL'), 'command' in task ? stopMs.command : stopMs.backup).unref();
  };
  ending.addEventListener('abort', stop, { once: true });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ? `signal ${signal}` : `status ${code}`));
  });
  child.send(task, () => {});
  if (ending.aborted) stop();
  const how = await ended;
  ending.removeEventListener('abort', stop);
  kill('SIGKILL');
  return outcome ?? { failure: `Its process ended with ${how}. ${lastOutput.trim()}`.trim() };
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // All of it is gone.
  }
}
