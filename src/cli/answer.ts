/** What a verb prints: the API's JSON, or a table of it. */

import { visibleLine } from '../domain/text.ts';
import { print, printMessage } from './output.ts';

export type Cell = string | number | boolean | null | undefined;

/**
 * The lines of a table, the heading first. Nothing in a cell can break its line or drive the terminal; an empty
 * one is `-`, so that every row splits into as many columns as the heading.
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

/** How many columns of a terminal a text takes. */
function widthOf(text: string): number {
  const visible = text.replace(nothing, '');
  return [...visible].length + (visible.match(wide)?.length ?? 0);
}

export interface Answer {
  json: unknown;
  /** For people, on stdout; empty for nothing. */
  text: string;
  /** A sentence on stderr. */
  message?: string;
  /** The exit status, where it is that of another program. */
  status?: number;
}

/** Prints an answer: as JSON or YAML where `format` says so, else for people. */
export async function printAnswer(answer: Answer, format: string | undefined): Promise<void> {
  if (format === 'json') return print(JSON.stringify(answer.json, null, 2));
  if (format === 'yaml') return print(await (await import('./files.ts')).formatYaml(answer.json));
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

/** A table of names and values, which needs no heading. */
export function formatPairs(rows: readonly (readonly [string, Cell])[]): string {
  return formatTable(['', ''], rows).split('\n').slice(1).join('\n');
}

/** Several values in one cell, without a space, so that a row can be split at spaces. */
export function listed(values: readonly string[]): string {
  return values.join(',');
}
