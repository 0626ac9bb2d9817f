/**
 * Data goes to stdout, every message for the person goes to stderr. No colour is used, so NO_COLOR holds. What is written
 * here cannot drive the terminal, also where the text comes from a server.
 */
import { CommanderError } from 'commander';
import { DomainError } from '../domain/error.ts';
import { escapeControls, visibleLine } from '../domain/text.ts';
import { commandIo } from '../lib/command-io.ts';
import { CliError, exitStatus } from './exit.ts';

export function print(line = ''): void {
  commandIo().stdout.write(`${escapeControls(line)}\n`);
}

/** Writes lines of data to stdout; resolves when they are handed over, rejects when the reader has closed the pipe. */
export function printAll(lines: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const text = lines.map((line) => `${escapeControls(line)}\n`).join('');
    commandIo().stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

export function printMessage(sentence: string): void {
  commandIo().stderr.write(`${escapeControls(sentence)}\n`);
}

/** Keeps `andromeda … | head` quiet, as a reader that has seen enough is no failure, and reports real failures. */
export function watchOutput(): void {
  process.stderr.on('error', () => {});
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isClosedPipe(error)) return;
    const reason = error.code === 'ENOSPC' ? 'there is no space left' : error.code;
    printMessage(`The output could not be written: ${reason}.`);
    process.exit(exitStatus.failure);
  });
}

/** Whether the reader of our output has gone away. */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}

/** Prints what went wrong and returns the exit status for it. */
export function report(error: unknown): number {
  if (isClosedPipe(error)) return exitStatus.ok;
  if (error instanceof CommanderError) return reportCommander(error);
  if (error instanceof CliError) {
    printMessage(visibleLine(error.message));
    debug(error);
    return exitStatus[error.outcome];
  }
  printMessage(
    error instanceof DomainError ? error.message : `Something went wrong: ${visibleLine(String(error))}`,
  );
  debug(error);
  return exitStatus.failure;
}

function reportCommander(error: CommanderError): number {
  if (error.exitCode === 0) return exitStatus.ok;
  // Commander showed help instead of an error: the person named a group of commands and none of them.
  if (error.code !== 'commander.help') printMessage(sentenceOf(error.message));
  return exitStatus.usage;
}

/** Commander's message as one plain sentence. */
function sentenceOf(message: string): string {
  const [, text = message, suggestion] =
    /^(?:error: )?(.*?)(?:\n\(Did you mean (.*)\?\))?$/s.exec(message) ?? [];
  const clause = visibleLine(text)
    .replace(/\.$/, '')
    .replace(/\. (Expected|Allowed)/, (_, start) => `: ${start.toLowerCase()}`);
  const start = clause.charAt(0).toUpperCase() + clause.slice(1);
  return suggestion ? `${start}; did you mean ${suggestion}?` : `${start}; see \`andromeda --help\`.`;
}

function debug(error: unknown): void {
  if (commandIo().env.ANDROMEDA_DEBUG && error instanceof Error) printMessage(error.stack ?? error.message);
}
