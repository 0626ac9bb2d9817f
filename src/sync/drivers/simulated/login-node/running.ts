/** A started process of a session, one shape with and without a terminal. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { Output } from './channel.ts';
import type { MakePipes } from './pipes.ts';
import { type Program, spawnProgram } from './spawn.ts';

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Running {
  readonly outputs: readonly { name: Output; stream: Readable }[];
  /** Resolves when the process itself has ended; output may still come. */
  readonly exited: Promise<Exit>;
  /** Hands input over; `used` is called in any case, when it has been taken or is lost. */
  write(chunk: Buffer, used: () => void): void;
  endInput(): void;
  resize(columns: number, rows: number): void;
  signal(name: NodeJS.Signals): void;
  /** Lets go of the descriptors and, if it still runs, signals the process that its terminal is gone. */
  hangUp(): void;
}

/** Starts a program with standard input, output and error apart. */
export async function runWithPipes(
  program: Program,
  makePipes: MakePipes | undefined,
  owner: { uid: number; gid: number } | undefined,
): Promise<Running> {
  const pipes = await makePipes?.(owner);
  const child = spawnProgram(program, pipes?.childEnds ?? ['pipe', 'pipe', 'pipe'], true);
  pipes?.closeChildEnds();
  const stdin = pipes?.stdin ?? (child.stdin as Writable);
  const stdout = pipes?.stdout ?? (child.stdout as Readable);
  const stderr = pipes?.stderr ?? (child.stderr as Readable);
  const process = watch(child);
  // A reader that has gone away is no error of ours; the write's callback reports it.
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => undefined);
  return {
    outputs: [
      { name: 'stdout', stream: stdout },
      { name: 'stderr', stream: stderr },
    ],
    exited: process.exited,
    write: (chunk, used) => {
      if (stdin.writable) stdin.write(chunk, used);
      else used();
    },
    endInput: () => {
      stdin.end();
    },
    resize: () => undefined,
    signal: process.signal,
    hangUp: () => {
      for (const stream of [stdin, stdout, stderr]) stream.destroy();
      process.signal('SIGHUP');
    },
  };
}

/** Follows a child that leads its own process group: its end, and signals to the group while it lives. */
export function watch(child: ChildProcess): Pick<Running, 'exited' | 'signal'> {
  let running = true;
  const exited = Promise.race([
    once(child, 'exit').then(([code, signal]): Exit => ({ code, signal })),
    // The program could not be started at all.
    once(child, 'error').then((): Exit => ({ code: 255, signal: null })),
  ]).finally(() => {
    running = false;
  });
  return {
    exited: exited.catch((): Exit => ({ code: 255, signal: null })),
    signal: (name) => {
      const { pid } = child;
      if (!running || pid === undefined) return;
      try {
        process.kill(-pid, name);
      } catch {
        // Not a group leader yet: the launcher is still about to call setsid.
        child.kill(name);
      }
    },
  };
}
