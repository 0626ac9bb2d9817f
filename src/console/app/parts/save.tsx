/** Saves data of a page as a file. */
import { useState } from 'react';
import { csv } from '../../../domain/text.ts';
import { Button, isWhole, type Reading } from './page.tsx';

export function save(name: string, type: string, ...parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

interface SaveOptions {
  label: string;
  isDisabled?: boolean;
  /** Saves the file; `say` shows progress, or a note about the file. */
  run: (say: (text: string) => void) => Promise<void>;
}

export function SaveButton({ label, isDisabled = false, run }: SaveOptions) {
  const [said, say] = useState('');
  const start = () => run(say).catch((error: Error) => say(`Nothing was saved. ${error.message}`));
  return (
    <>
      <span className="soft small" role="status">
        {said}
      </span>
      <Button className="link small" disabled={isDisabled} onClick={() => void start()}>
        {label}
      </Button>
    </>
  );
}

interface SaveCsvOptions {
  name: string;
  of: Reading<unknown>;
  text: () => string | Promise<string>;
}

export function SaveCsv({ name, of, text }: SaveCsvOptions) {
  const run = async () => save(name, 'text/csv', await text());
  return <SaveButton label="Save as CSV" isDisabled={!isWhole(of)} run={run} />;
}

/** The limit of a file: the command line, which streams, saves longer lists. */
const mostRows = 200_000;

interface SavedList<Row> {
  name: string;
  /** The pages of the list, from the one on the screen on. */
  pages: () => AsyncIterable<readonly Row[]>;
  columns: readonly string[];
  cells: (row: Row) => readonly (string | number)[];
}

/** Saves a list beyond the page on the screen. Each page becomes a Blob, which the browser may keep on disk. */
export function SaveAll<Row>(saved: SavedList<Row>) {
  return (['csv', 'jsonl'] as const).map((kind) => (
    <SaveButton key={kind} label={`Save as ${kind.toUpperCase()}`} run={(say) => saveAs(saved, kind, say)} />
  ));
}

async function saveAs<Row>(
  { name, pages, columns, cells }: SavedList<Row>,
  kind: 'csv' | 'jsonl',
  say: (text: string) => void,
): Promise<void> {
  const parts: Blob[] = kind === 'csv' ? [new Blob([csv([columns])])] : [];
  let count = 0;
  for await (const page of pages()) {
    const rows = page.slice(0, mostRows - count);
    const text =
      kind === 'csv' ? csv(rows.map(cells)) : rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    parts.push(new Blob([text]));
    count += rows.length;
    say(`${count.toLocaleString()} read…`);
    if (count >= mostRows) break;
  }
  save(`${name}.${kind}`, kind === 'csv' ? 'text/csv' : 'application/jsonl', ...parts);
  const most = mostRows.toLocaleString();
  say(count < mostRows ? '' : `These are the first ${most}; narrow it, or use the command line.`);
}
