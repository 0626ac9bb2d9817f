/** Other programs at the person's terminal, such as their own editor. */
import { type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandIo } from '../lib/command-io.ts';
import { CliError, failure } from './exit.ts';

/**
 * Lets the person edit `text`, then calls `use` with the result and the file it is in. What they wrote is never lost:
 * when `use` fails the file stays, and the sentence names it.
 */
export async function editText<T>(
  name: string,
  text: string,
  use: (edited: string, file: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(commandIo().env['TMPDIR'] || tmpdir(), 'andromeda-edit-'));
  const file = join(directory, name);
  await writeFile(file, text, { mode: 0o600 });
  const remove = () => rm(directory, { recursive: true, force: true });
  await runEditor(file).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const edited = await readFile(file, 'utf8');
  try {
    const result = await use(edited, file);
    await remove();
    return result;
  } catch (error) {
    if (!(error instanceof CliError) || edited === text) {
      await remove();
      throw error;
    }
    const sentence = error.message.replaceAll(`${file}:`, `${name}:`);
    throw new CliError(error.outcome, `${sentence} Your text is in ${file}.`, { cause: error });
  }
}

export function editorCommand(
  file: string,
  env: NodeJS.ProcessEnv = commandIo().env,
  platform: NodeJS.Platform = process.platform,
): { editor: string; program: string; args: string[]; windowsVerbatimArguments?: true } {
  const isWindows = platform === 'win32';
  const editor = env.VISUAL || env.EDITOR || (isWindows ? 'notepad' : 'vi');
  // By the shell, as git does it: an editor may come with arguments. The file is an argument of its own.
  if (!isWindows) return { editor, program: '/bin/sh', args: ['-c', `${editor} "$1"`, 'editor', file] };
  // cmd.exe takes the outermost quotes away, and Node must put in none of its own.
  const args = ['/d', '/s', '/c', `"${editor} "${file}""`];
  return { editor, program: env.ComSpec || 'cmd.exe', args, windowsVerbatimArguments: true };
}

async function runEditor(file: string): Promise<void> {
  const { editor, program, args, ...options } = editorCommand(file);
  const status = await runAtTerminal(program, args, options).catch((error: Error) => {
    throw failure(`The editor could not be started: ${error.message}.`, error);
  });
  if (status !== 0) throw failure(`The editor '${editor}' did not end well; nothing was changed.`);
}

export async function runAtTerminal(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<number> {
  // Ctrl-C is for the program, which has it from the terminal: were we to end first, the two would share the terminal. What
  // only we get is handed on, from its first moment.
  const { env, childStdio: stdio, signals } = commandIo();
  const ignore = () => {};
  const handOn = (signal: NodeJS.Signals) => child.kill(signal);
  signals.on('SIGINT', ignore);
  signals.on('SIGTERM', handOn);
  signals.on('SIGHUP', handOn);
  const child = spawn(program, args, { env, stdio, ...options });
  try {
    const ended = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    const [status, signal] = ended;
    return status ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  } finally {
    signals.off('SIGINT', ignore);
    signals.off('SIGTERM', handOn);
    signals.off('SIGHUP', handOn);
  }
}
