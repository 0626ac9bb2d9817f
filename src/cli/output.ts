/**
 * Writes data to stdout, and messages for the person to stderr. Uses no colour, so NO_COLOR is respected. Escapes terminal
 * controls, also in text from a server.
 */
import { CommanderError } from 'commander';
import { DomainError } from '../domain/error.ts';
import { csv, escapeControls, visibleLine } from '../domain/text.ts';
import { commandIo } from '../lib/command-io.ts';
import { CliError, exitStatus } from './exit.ts';

export function print(line = ''): void {
  commandIo().stdout.write(`${escapeControls(line)}\n`);
}

/** Writes lines of data to stdout. Resolves when they are written, rejects when the reader has closed the pipe. */
export function printAll(lines: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const text = lines.map((line) => `${escapeControls(line)}\n`).join('');
    commandIo().stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

export function printMessage(sentence: string): void {
  commandIo().stderr.write(`${escapeControls(sentence)}\n`);
}

/** Ignores EPIPE, as a reader such as `head` may stop early, and reports other write errors. */
export function watchOutput(): void {
  process.stderr.on('error', () => {});
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isClosedPipe(error)) return;
    const reason = error.code === 'ENOSPC' ? 'there is no space left' : error.code;
    printMessage(`The output could not be written: ${reason}.`);
    process.exit(exitStatus.failure);
  });
}

export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}

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
  // For `commander.help`, Commander has printed help already: the command line named only a group of commands.
  if (error.code !== 'commander.help') printMessage(sentenceOf(error.message));
  return exitStatus.usage;
}

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

export type Cell = string | number | boolean | null | undefined;

/**
 * Formats a table, the heading first. Cell text cannot break its line or control the terminal. An empty cell is `-`, so that
 * every row has as many columns as the heading.
 */
export function formatTable(heading: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const table = [heading, ...rows.map((row) => row.map(text))];
  const widths = heading.map((_, column) => Math.max(...table.map((row) => widthOf(row[column] ?? ''))));
  const line = (row: readonly string[]) =>
    row.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell))).join('  ');
  return table.map((row) => line(row).trimEnd()).join('\n');
}

function text(cell: Cell): string {
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  return visibleLine(String(cell ?? '')) || '-';
}

const nothing = /[\p{Mn}\p{Me}\p{Cf}]/gu;
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu;

function widthOf(text: string): number {
  const visible = text.replace(nothing, '');
  return [...visible].length + (visible.match(wide)?.length ?? 0);
}

export interface Answer {
  json: unknown;
  text: string;
  message?: string;
  status?: number;
}

export async function printAnswer(answer: Answer, format: string | undefined): Promise<void> {
  if (format === 'json') return print(JSON.stringify(answer.json, null, 2));
  if (format === 'yaml') return print(await (await import('./files.ts')).formatYaml(answer.json));
  if (answer.text !== '') print(answer.text);
  if (answer.message !== undefined) printMessage(answer.message);
}

export type Columns<T> = Record<string, (row: T) => Cell>;

export function printer<T>(columns: Columns<T>, none: string) {
  const table = (rows: readonly T[]) =>
    formatTable(
      Object.keys(columns),
      rows.map((row) => Object.values(columns).map((cell) => cell(row))),
    );
  return {
    one: (json: T): Answer => ({ json, text: table([json]) }),
    many: (json: unknown, rows: readonly T[]): Answer =>
      rows.length === 0 ? { json, text: '', message: none } : { json, text: table(rows) },
  };
}

export function formatPairs(rows: readonly (readonly [string, Cell])[]): string {
  return formatTable(['', ''], rows).split('\n').slice(1).join('\n');
}

/** Formats rows as CSV, with LF line ends and none after the last line. */
export function csvText(rows: Parameters<typeof csv>[0]): string {
  return csv(rows).replaceAll('\r\n', '\n').trimEnd();
}

/** Joins values into one cell without spaces, so that a row can be split at spaces. */
export function listed(values: readonly string[]): string {
  return values.join(',');
}
