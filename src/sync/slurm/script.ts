/** The script for a host, followed by its data; and the parser of the report that it writes. */
import { accounting } from './script/accounting.ts';
import { accounts } from './script/accounts.ts';
import { adoption } from './script/adoption.ts';
import { configuration } from './script/configuration.ts';
import { direct } from './script/direct.ts';
import { directory } from './script/directory.ts';
import { groups } from './script/groups.ts';
import { main } from './script/main.ts';
import { prelude } from './script/prelude.ts';
import { restart } from './script/restart.ts';
import { survey } from './script/survey.ts';

/** A line of data: its kind, and fields without tabs or line ends; free text is base64. */
export type Row = readonly [kind: string, ...fields: (string | number)[]];

const parts = [
  ...[prelude, direct, accounts, adoption, directory, groups],
  ...[accounting, configuration, restart, main],
];
const program = parts.join('');

/** Terminator of the data. No line of data can equal it, as each begins with its kind and a tab. */
const endOfData = 'ANDROMEDA_DATA_ENDS';

export function scriptOf(rows: readonly Row[]): string {
  return withData(program, 'main', rows);
}

/** The script that only reads, also on a host without anything of ours. */
export function surveyScriptOf(rows: readonly Row[]): string {
  return withData(prelude + directory + survey, 'survey', rows);
}

function withData(code: string, start: string, rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const line = row.join('\t');
    if (/[\n\r\0]/.test(line) || row.some((field) => String(field).includes('\t'))) {
      throw new Error(`a field of ${row[0]} has a tab or a line end in it`);
    }
    return line;
  });
  return `${code}\n${start} << '${endOfData}'\n${lines.join('\n')}\nend\n${endOfData}\n`;
}

export const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Returns the fields of each line of a report by kind. Throws when the end of the report is missing. */
export function readReport(text: string): Map<string, string[][]> {
  const lines = text.split('\n').filter((line) => line !== '');
  if (lines.at(-1) !== 'end') throw new Error('the report ends too early');
  const found = new Map<string, string[][]>();
  for (const line of lines.slice(0, -1)) {
    const [kind = '', ...fields] = line.split('\t');
    const rows = found.get(kind) ?? [];
    rows.push(fields);
    found.set(kind, rows);
  }
  return found;
}
