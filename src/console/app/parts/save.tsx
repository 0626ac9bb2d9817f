/** Saving what a page shows as a file. */
import { useRef, useState } from 'react';
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

interface SaveCsvOptions {
  name: string;
  of: Reading<unknown>;
  text: () => string | Promise<string>;
}

export function SaveCsv({ name, of, text }: SaveCsvOptions) {
  const [problem, setProblem] = useState<string>();
  const run = async () => {
    try {
      save(name, 'text/csv', await text());
      setProblem(undefined);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : 'It failed.');
    }
  };
  return (
    <>
      {problem && (
        <span className="bad small" role="alert">
          Nothing was saved. {problem}
        </span>
      )}
      <Button className="link small" disabled={!isWhole(of)} onClick={() => void run()}>
        Save as CSV
      </Button>
    </>
  );
}

/** More is for the command line, which writes as it reads. */
const mostRows = 200_000;

interface Saved<Row> {
  name: string;
  /** Page by page, from the one that is shown on. */
  pages: (signal: AbortSignal) => AsyncIterable<readonly Row[]>;
  isWanted: (row: Row) => boolean;
  columns: readonly string[];
  cells: (row: Row) => readonly (string | number)[];
}

/** Saves a list beyond the page that is shown: page by page, each handed to the browser, which keeps it on its disk. */
export function SaveAll<Row>(saved: Saved<Row>) {
  const [state, setState] = useState<{ count?: number; problem?: string }>({});
  const stopping = useRef<AbortController>(undefined);
  const run = async (kind: 'csv' | 'jsonl') => {
    stopping.current = new AbortController();
    const { signal } = stopping.current;
    setState({ count: 0 });
    try {
      const isCut = await saveAs(saved, kind, signal, (count) => setState({ count }));
      const most = mostRows.toLocaleString();
      setState(isCut ? { problem: `These are the first ${most}; narrow it, or use the command line.` } : {});
    } catch (error) {
      const problem = error instanceof Error ? error.message : 'It failed.';
      setState(signal.aborted ? {} : { problem });
    }
  };
  if (state.count !== undefined)
    return (
      <span className="soft small" role="status">
        {state.count.toLocaleString()} read…{' '}
        <Button className="link small" onClick={() => stopping.current?.abort()}>
          Stop
        </Button>
      </span>
    );
  return (
    <>
      {state.problem && (
        <span className="soft small" role="status">
          {state.problem}
        </span>
      )}
      <Button className="link small" onClick={() => void run('csv')}>
        Save as CSV
      </Button>
      <Button className="link small" onClick={() => void run('jsonl')}>
        Save as JSONL
      </Button>
    </>
  );
}

async function saveAs<Row>(
  { name, pages, isWanted, columns, cells }: Saved<Row>,
  kind: 'csv' | 'jsonl',
  signal: AbortSignal,
  onCount: (count: number) => void,
): Promise<boolean> {
  const parts: Blob[] = kind === 'csv' ? [new Blob([csv([columns])])] : [];
  let count = 0;
  for await (const page of pages(signal)) {
    signal.throwIfAborted();
    const rows = page.filter(isWanted).slice(0, mostRows - count);
    const text =
      kind === 'csv' ? csv(rows.map(cells)) : rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    parts.push(new Blob([text]));
    count += rows.length;
    onCount(count);
    if (count >= mostRows) break;
  }
  save(`${name}.${kind}`, kind === 'csv' ? 'text/csv' : 'application/jsonl', ...parts);
  return count >= mostRows;
}
