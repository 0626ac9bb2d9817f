/** Commands of the program by function: as a process runs them, with streams and an environment of their own. */
import { EventEmitter } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { run } from '../../src/cli/program.ts';
import { hostCommands } from '../../src/host-commands.ts';
import type { CommandIo } from '../../src/lib/command-io.ts';

export interface Result {
  status: number;
  stdout: string;
  stderr: string;
  /** Both, in the order in which they came; what other programs wrote stands at the end. */
  screen: string;
  bytes: Buffer;
}

export interface Running {
  result: Promise<Result>;
  /** Resolves to all of stdout and stderr so far, once `text` is in what came since the last call. */
  until(text: string): Promise<string>;
  /** What a person types, where they are at a terminal. */
  type(text: string): void;
  signal(name: NodeJS.Signals): void;
}

export interface CommandOptions {
  input?: string | undefined;
  env?: Record<string, string | undefined>;
  /** Its streams are a terminal, and so is what they say of themselves. */
  terminal?: boolean;
}

/** Starts a command; nothing of the environment of the tests is in its own. */
export function startCommand(args: readonly string[], options: CommandOptions = {}): Running {
  const { input = '', env = {}, terminal = false } = options;
  const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  let screen = '';
  let seen = 0;
  let check = () => {};
  const output = (name: 'stdout' | 'stderr') => {
    const stream = new Writable({
      write(chunk: Buffer, _encoding, done) {
        written[name].push(chunk);
        screen += chunk.toString('utf8').replaceAll('\r\n', '\n');
        check();
        done();
      },
    });
    return terminal ? Object.assign(stream, { isTTY: true, columns: 200 }) : stream;
  };
  const signals = new EventEmitter();
  const keyboard = Object.assign(new PassThrough(), {
    isRaw: false,
    setRawMode(isRaw: boolean) {
      keyboard.isRaw = isRaw;
    },
  });
  if (terminal) Object.assign(keyboard, { isTTY: true });
  else keyboard.end(input);
  // Where the programs write that it starts in its place.
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-command-'));
  const files = [join(directory, 'stdout'), join(directory, 'stderr')] as const;
  const descriptors = files.map((file) => openSync(file, 'w'));
  const io: CommandIo = {
    env,
    stdin: keyboard,
    stdout: output('stdout'),
    stderr: output('stderr'),
    childStdio: ['ignore', ...descriptors],
    signals,
  };
  const result = run(args, io, hostCommands())
    .then((status): Result => {
      const [bytes, errors] = files.map((file, index) =>
        Buffer.concat([...written[index === 0 ? 'stdout' : 'stderr'], readFileSync(file)]),
      ) as [Buffer, Buffer];
      screen += files.map((file) => readFileSync(file, 'utf8')).join('');
      return { status, bytes, stdout: bytes.toString('utf8'), stderr: errors.toString('utf8'), screen };
    })
    .finally(() => {
      for (const one of descriptors) closeSync(one);
      rmSync(directory, { recursive: true, force: true });
    });
  const until = (text: string) =>
    new Promise<string>((resolve, reject) => {
      check = () => {
        const found = screen.indexOf(text, seen);
        if (found < 0) return;
        seen = found + text.length;
        check = () => {};
        resolve(screen);
      };
      check();
      const ended = () => reject(new Error(`It ended without '${text}': ${screen}`));
      void result.then(ended, ended);
    });
  return {
    result,
    until,
    type(text) {
      if (text === '\u0003' && !keyboard.isRaw) signals.emit('SIGINT');
      else keyboard.write(text);
    },
    signal: (name) => void signals.emit(name, name),
  };
}

export function runCommand(args: readonly string[], options: CommandOptions = {}): Promise<Result> {
  return startCommand(args, options).result;
}
