/**
 * Real pipes for sessions without a terminal. What Node calls a pipe is a socket pair, on which opening
 * /dev/stdin or /dev/stderr fails (`tee /dev/stderr`, `python3 /dev/stdin`), and a FIFO blocks there once its
 * other end is closed. Node cannot make a pipe, but a shell does for a here-document, and /proc lets us open
 * both of its ends before the shell goes away.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, fchownSync, openSync, readlinkSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

export interface StandardPipes {
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  /** The three ends for the process; close them here once it has started. */
  childEnds: [number, number, number];
  closeChildEnds(): void;
}

export type MakePipes = (owner: { uid: number; gid: number } | undefined) => Promise<StandardPipes>;

interface Pipe {
  read: number;
  write: number;
}

/** One digit each, because that is all that every shell takes. */
const descriptors = [3, 4, 5, 6, 7, 8];
const script = `${descriptors.map((fd) => `exec ${fd}<<E\nE\n`).join('')}echo ready\nread -r _\n`;
const perSession = 3;

/** A maker of pipes that keeps a few ready; undefined where this machine's shell does it another way. */
export async function pipeMaker(): Promise<MakePipes | undefined> {
  const ready: Pipe[] = [];
  let making: Promise<void> | undefined;
  const refill = () => {
    making ??= makePipes(ready).finally(() => {
      making = undefined;
    });
    return making;
  };
  try {
    await refill();
  } catch {
    return undefined;
  }
  return async (owner) => {
    while (ready.length < perSession) await refill();
    const pipes = ready.splice(0, perSession) as [Pipe, Pipe, Pipe];
    if (ready.length < perSession) refill().catch(() => undefined);
    return standardPipes(pipes, owner);
  };
}

async function makePipes(ready: Pipe[]): Promise<void> {
  const shell = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'], env: {} });
  shell.stdin.on('error', () => undefined);
  shell.on('error', () => undefined);
  try {
    await Promise.race([once(shell.stdout, 'data'), once(shell, 'close')]);
    for (const fd of descriptors) {
      const path = `/proc/${shell.pid}/fd/${fd}`;
      if (!readlinkSync(path).startsWith('pipe:')) throw new Error('a here-document is not a pipe here');
      const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      ready.push({ read, write: openSync(path, constants.O_WRONLY) });
    }
  } finally {
    shell.stdin.end();
  }
}

function standardPipes(
  [input, output, errors]: [Pipe, Pipe, Pipe],
  owner: { uid: number; gid: number } | undefined,
): StandardPipes {
  const childEnds: [number, number, number] = [input.read, output.write, errors.write];
  if (owner) for (const fd of childEnds) fchownSync(fd, owner.uid, owner.gid);
  return {
    stdin: new Socket({ fd: input.write, readable: false, writable: true }),
    stdout: new Socket({ fd: output.read, readable: true, writable: false }),
    stderr: new Socket({ fd: errors.read, readable: true, writable: false }),
    childEnds,
    closeChildEnds: () => {
      for (const fd of childEnds) closeSync(fd);
    },
  };
}
