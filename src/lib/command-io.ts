/**
 * The process surroundings of a command: environment, standard streams, signals. Tests run commands by function,
 * several at a time in one process, so no command asks `process` for these. Nearly every function of one prints or
 * reads a variable, so they follow the command through its awaits instead of being passed to each.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { StdioOptions } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

export interface CommandIo {
  env: NodeJS.ProcessEnv;
  stdin: Readable & { isTTY?: boolean };
  stdout: Writable & { columns?: number };
  stderr: Writable & { isTTY?: boolean; columns?: number };
  /** Standard streams of a program that the command starts instead of itself, such as ssh. */
  childStdio: StdioOptions;
  signals: Pick<NodeJS.EventEmitter, 'on' | 'once' | 'off'>;
}

/** The surroundings of this process. Each stream is opened at its first use, which changes its mode. */
export const processIo: CommandIo = {
  env: process.env,
  get stdin() {
    return process.stdin;
  },
  get stdout() {
    return process.stdout;
  },
  get stderr() {
    return process.stderr;
  },
  childStdio: 'inherit',
  signals: process,
};

const current = new AsyncLocalStorage<CommandIo>();

export function commandIo(): CommandIo {
  return current.getStore() ?? processIo;
}

export function withCommandIo<T>(io: CommandIo, work: () => T): T {
  return current.run(io, work);
}
