/** What a verb prints: the API's JSON, or a table of it. */
import { print, printMessage } from './output.ts';
import { type Cell, formatTable } from './table.ts';

export interface Answer {
  json: unknown;
  /** For people, on stdout; empty for nothing. */
  text: string;
  /** A sentence on stderr beside it. */
  message?: string;
  /** The exit status, where it is that of another program. */
  status?: number;
}

/** Prints an answer: as JSON or YAML where `format` says so, else for people. */
export async function printAnswer(answer: Answer, format: string | undefined): Promise<void> {
  if (format === 'json') return print(JSON.stringify(answer.json, null, 2));
  if (format === 'yaml') return print(await (await import('./yaml-file.ts')).formatYaml(answer.json));
  if (answer.text !== '') print(answer.text);
  if (answer.message !== undefined) printMessage(answer.message);
}

/** A table's columns: the heading, and what stands below it. */
export type Columns<T> = Record<string, (row: T) => Cell>;

/** How one kind of thing is printed; `none` is the message when a list of them is empty. */
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

/** Several values in one cell, without a space, so that a row can be split at spaces. */
export function listed(values: readonly string[]): string {
  return values.join(',');
}
