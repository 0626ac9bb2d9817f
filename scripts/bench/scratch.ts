/** What a bench leaves behind is nothing: one temporary folder, and every process it started, also on Ctrl-C. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Scratch extends AsyncDisposable {
  readonly dir: string;
  /** A fresh folder. */
  folder(name: string): string;
  /** Starts a program that runs until the bench ends or `end` is called. */
  start(command: readonly string[], options?: StartOptions): ChildProcess;
  /** Runs a program to its end and resolves to what it wrote to stdout; rejects when it fails. */
  run(command: readonly string[], options?: StartOptions): Promise<string>;
  end(child: ChildProcess): Promise<void>;
  endProcesses(): Promise<void>;
}

export interface StartOptions {
  stdio?: StdioOptions;
  env?: NodeJS.ProcessEnv;
}

const patienceMs = 3_000;

export function createScratch(): Scratch {
  const dir = mkdtempSync(join(tmpdir(), 'andromeda-bench-'));
  const children = new Set<ChildProcess>();
  let interrupted = false;

  function start(command: readonly string[], options: StartOptions = {}): ChildProcess {
    const [program = '', ...args] = command;
    // A group of its own, so that nothing of a pipeline outlives it, and Ctrl-C reaches the bench alone.
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true, ...options });
    children.add(child);
    child.once('close', () => children.delete(child));
    child.once('error', () => children.delete(child));
    return child;
  }

  async function end(child: ChildProcess): Promise<void> {
    if (!children.has(child)) return;
    const closed = new Promise((done) => child.once('close', done));
    signalGroup(child, 'SIGTERM');
    await Promise.race([closed, sleep(patienceMs, undefined, { ref: false })]);
    signalGroup(child, 'SIGKILL');
    await closed;
  }

  const endProcesses = async () => void (await Promise.all([...children].map(end)));

  async function dispose(): Promise<void> {
    await endProcesses();
    rmSync(dir, { recursive: true, force: true });
  }

  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => {
      interrupted = true;
      void dispose().finally(() => process.exit(1));
    });
  }
  // The net under all of it, for an error that nobody caught.
  process.once('exit', () => {
    for (const child of children) signalGroup(child, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });

  return {
    dir,
    folder: (name) => mkdtempSync(join(dir, `${name}-`)),
    start,
    run: (command, options) =>
      outcome(start(command, options), command).catch((error: unknown) => {
        // What we ended ourselves has not failed; nobody waits for it any more.
        if (interrupted) return new Promise(() => {});
        throw error;
      }),
    end,
    endProcesses,
    [Symbol.asyncDispose]: dispose,
  };
}

function outcome(child: ChildProcess, command: readonly string[]): Promise<string> {
  let out = '';
  let err = '';
  child.stdout?.on('data', (data: Buffer) => {
    out += data;
  });
  child.stderr?.on('data', (data: Buffer) => {
    err += data;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => {
      if (status === 0) resolve(out);
      else reject(new Error(`${command.join(' ')} ended with ${status ?? signal}: ${err.trim()}`));
    });
  });
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // It is gone already.
  }
}
