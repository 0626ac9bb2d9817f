/**
 * A process on a terminal of its own. Of node-pty only the native calls are used: its terminal object drops
 * output that is still unread 200 ms after the end, and takes input without limit.
 */
import { chmodSync, chownSync, closeSync, writeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import * as nodePty from 'node-pty';
import { type Running, watch } from './running.ts';
import { forgetHidden, hideFromChildren, type Program, spawnProgram } from './spawn.ts';

interface NativePty {
  open(columns: number, rows: number): { master: number; slave: number; pty: string };
  resize(fd: number, columns: number, rows: number): void;
}

const { native } = nodePty as unknown as { native: NativePty };
const longestWaitForInput = 50;

export interface TerminalSize {
  columns: number;
  rows: number;
}

/** Starts a program with a new terminal as its standard input, output and error. */
export function runWithTerminal(
  program: (ttyPath: string) => Program,
  size: TerminalSize,
  owner: { uid: number; gid: number } | undefined,
): Running {
  const { master, slave, pty: path } = native.open(size.columns, size.rows);
  hideFromChildren(master);
  const stream = new ReadStream(master);
  try {
    if (owner) chownSync(path, owner.uid, owner.gid);
    chmodSync(path, 0o600);
    const inner = program(path);
    // setsid -c makes the terminal the controlling one, which Node's own `detached` cannot.
    const outer = { ...inner, file: 'setsid', args: ['-c', inner.file, ...inner.args] };
    const process = watch(spawnProgram(outer, [slave, slave, slave], false));
    return terminal(master, stream, process);
  } catch (error) {
    stream.destroy();
    forgetHidden(master);
    throw error;
  } finally {
    closeSync(slave);
  }
}

function terminal(master: number, stream: ReadStream, process: ReturnType<typeof watch>): Running {
  const input: { chunk: Buffer; used: () => void }[] = [];
  let timer: NodeJS.Timeout | undefined;
  let wait = 1;
  let open = true;
  const shut = () => {
    open = false;
    clearTimeout(timer);
    for (const { used } of input.splice(0)) used();
    stream.destroy();
  };
  // Linux ends a terminal whose last process is gone with EIO, after all of its output.
  stream.on('error', shut);
  stream.on('end', shut);
  stream.on('close', () => forgetHidden(master));

  function feed(): void {
    timer = undefined;
    for (let next = input[0]; open && next; next = input[0]) {
      const written = writeSome(master, next.chunk);
      if (written === undefined) {
        shut();
        return;
      }
      if (written === 0) {
        // A full terminal (nobody reads) is asked again later: Node has no event for it.
        wait = Math.min(wait * 2, longestWaitForInput);
        timer = setTimeout(feed, wait);
        return;
      }
      wait = 1;
      next.chunk = next.chunk.subarray(written);
      if (next.chunk.length > 0) continue;
      input.shift();
      next.used();
    }
  }

  return {
    outputs: [{ name: 'stdout', stream }],
    exited: process.exited,
    write: (chunk, used) => {
      if (!open || chunk.length === 0) return used();
      input.push({ chunk, used });
      if (timer === undefined) feed();
    },
    // As with OpenSSH, the end of the client's input does not end a terminal.
    endInput: () => undefined,
    resize: (columns, rows) => {
      if (open) native.resize(master, columns, rows);
    },
    signal: process.signal,
    hangUp: () => {
      process.signal('SIGHUP');
      shut();
    },
  };
}

/**
 * The bytes taken: 0 when the terminal is full, undefined when it is gone. The descriptor never blocks, and a
 * write in a thread could hit whatever got the same number after the terminal was closed.
 */
function writeSome(fd: number, chunk: Buffer): number | undefined {
  try {
    return writeSync(fd, chunk);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : undefined;
  }
}
