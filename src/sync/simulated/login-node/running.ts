/** Starts the processes of sessions: the same interface with and without a terminal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Readable, Writable } from 'node:stream';
import { ReadStream } from 'node:tty';
import type { Output } from './channel.ts';

const require = createRequire(import.meta.url);

/**
 * Only node-pty's native calls are used: its terminal object drops output that is unread 200 ms after the end, and buffers
 * input without limit.
 */
const native: {
  open(columns: number, rows: number): { master: number; slave: number; pty: string };
  resize(fd: number, columns: number, rows: number): void;
} = require('@lydell/node-pty/requireBinary.js').requireBinary('pty.node');
const terminalFullMs = 5;

export interface Program {
  file: string;
  args: string[];
  env: Record<string, string>;
}

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Running {
  readonly outputs: readonly { name: Output; stream: Readable }[];
  /** Resolves when the process has exited; output may still come. */
  readonly exited: Promise<Exit>;
  readonly input: Writable;
  resize(columns: number, rows: number): void;
  signal(name: NodeJS.Signals): void;
  /** Closes the descriptors and sends SIGHUP if the process still runs. */
  hangUp(): void;
}

/** Starts a program with separate standard input, output and error. */
export function runWithPipes(program: Program): Running {
  const child = spawnProgram(program, ['pipe', 'pipe', 'pipe'], true);
  const { stdin, stdout, stderr } = child as ChildProcess & Record<'stdout' | 'stderr', Readable>;
  const process = follow(child);
  const streams = [stdin as Writable, stdout, stderr];
  // EPIPE after the reader closed its end is not an error.
  for (const stream of streams) stream.on('error', () => undefined);
  return {
    ...process,
    outputs: [
      { name: 'stdout', stream: stdout },
      { name: 'stderr', stream: stderr },
    ],
    input: stdin as Writable,
    resize: () => undefined,
    hangUp: () => {
      for (const stream of streams) stream.destroy();
      process.signal('SIGHUP');
    },
  };
}

/** Starts a program with a new terminal as its standard input, output and error. */
export function runWithTerminal(
  program: (ttyPath: string) => Program,
  size: { columns: number; rows: number },
  owner: { uid: number; gid: number } | undefined,
): Running {
  const { master, slave, pty: path } = native.open(size.columns, size.rows);
  inheritable.add(master);
  const stream = new ReadStream(master);
  stream.on('close', () => inheritable.delete(master));
  try {
    if (owner) chownSync(path, owner.uid, owner.gid);
    chmodSync(path, 0o600);
    const { file, args, env } = program(path);
    // setsid -c makes the terminal the controlling one, which Node's own `detached` cannot.
    const outer = { file: 'setsid', args: ['-c', file, ...args], env };
    return terminal(master, stream, follow(spawnProgram(outer, [slave, slave, slave], false)));
  } catch (error) {
    stream.destroy();
    throw error;
  } finally {
    closeSync(slave);
  }
}

function terminal(master: number, stream: ReadStream, process: ChildControl): Running {
  let open = true;
  const shut = () => {
    open = false;
    stream.destroy();
  };
  // Linux ends a terminal whose last process has exited with EIO, after all of its output.
  stream.on('error', shut);
  stream.on('end', shut);

  function feed(chunk: Buffer, done: () => void): void {
    const written = open ? writeSome(master, chunk) : undefined;
    if (written === undefined || written === chunk.length) done();
    // A full terminal (the program does not read) is retried later: Node has no event for it.
    else setTimeout(() => feed(chunk.subarray(written), done), terminalFullMs);
  }

  return {
    ...process,
    outputs: [{ name: 'stdout', stream }],
    // As in OpenSSH, the end of the client's input does not end a terminal.
    input: new Writable({ write: (chunk: Buffer, _, done) => feed(chunk, done) }),
    resize: (columns, rows) => {
      if (open) native.resize(master, columns, rows);
    },
    hangUp: () => {
      process.signal('SIGHUP');
      shut();
    },
  };
}

/**
 * Returns the bytes written: 0 when the terminal is full, undefined when it is closed. Synchronous, as the descriptor never
 * blocks, and a write in a thread could hit a descriptor that reused the number after the close.
 */
function writeSome(fd: number, chunk: Buffer): number | undefined {
  try {
    return writeSync(fd, chunk);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : undefined;
  }
}

type ChildControl = Pick<Running, 'exited' | 'signal'>;

/** Tracks a child that leads its own process group: its exit, and signals to the group while it lives. */
function follow(child: ChildProcess): ChildControl {
  let running = true;
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    // The program could not be started.
    child.once('error', () => resolve({ code: 255, signal: null }));
  }).finally(() => {
    running = false;
  });
  return {
    exited,
    signal: (name) => {
      const { pid } = child;
      if (!running || pid === undefined) return;
      try {
        process.kill(-pid, name);
      } catch {
        // The child is not a group leader yet: the launcher has yet to call setsid.
        child.kill(name);
      }
    },
  };
}

/**
 * Descriptors that new processes would inherit, replaced there with /dev/null: those that this process inherited, and
 * terminals, which node-pty opens without close-on-exec, so that one person could read another's.
 */
const inheritable = new Set<number>();
const closeOnExec = 0o2000000;
let devNull: number | undefined;

/** Records the descriptors that this process inherited; must be called before any other is opened. */
export function hideInherited(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    try {
      const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8'))?.[1];
      if (Number(name) > 2 && flags && !(Number.parseInt(flags, 8) & closeOnExec))
        inheritable.add(Number(name));
    } catch {
      // The descriptor of this directory listing is closed already.
    }
  }
}

/** Spawns with these descriptors (or new pipes) as 0, 1 and 2; `leader` starts a new session. */
function spawnProgram(
  { file, args, env }: Program,
  standard: readonly (number | 'pipe')[],
  leader: boolean,
): ChildProcess {
  devNull ??= openSync('/dev/null', 'r+');
  const stdio: (number | 'pipe' | 'ignore')[] = [...standard];
  for (const fd of inheritable) {
    while (stdio.length < fd) stdio.push('ignore');
    stdio[fd] = devNull;
  }
  return spawn(file, args, { cwd: '/', env, stdio, detached: leader });
}
