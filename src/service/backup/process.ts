/** Starts a process that makes one backup, or runs the command after it (`role.ts`), for the service or a CLI command. */
import { spawn } from 'node:child_process';
import { backupArguments, inheritedEnvironment } from '../../lib/packaging.ts';
import type { BackupOutcome, BackupTask } from './role.ts';

/** Time between SIGTERM and SIGKILL: a long check does not notice the signal, and a command may have to remove a lock on another machine. */
const stopMs = { backup: 300, command: 2_000 };

/** Our environment can have secrets, so only identity and locale are passed on. */
const passedOn = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'TZ', 'TMPDIR'];

/**
 * Runs a task in a process of its own, as leader of a process group: all that it started ends with it. `ending` ends
 * it early; there is no outcome then.
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
    // The whole group is gone.
  }
}
