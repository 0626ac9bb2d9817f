/** What the bench found, as a table to read. */

export interface Row {
  row: string;
  ours: string;
  reference: string;
  /** Ours to the reference. */
  ratio: number;
  /** What we want to reach; empty where a row only informs. */
  aim: string;
  met?: boolean;
}

export interface Report {
  rows: Row[];
  /** Sentences: what was left out, and why. */
  notes: string[];
}

export function table({ rows, notes }: Report): string {
  const head = ['row', 'ours', 'reference', 'ratio', 'aim', ''];
  const lines = [
    head,
    ...rows.map(({ row, ours, reference, ratio, aim, met }) => [
      row,
      ours,
      reference,
      ratio.toFixed(2),
      aim,
      met === undefined ? '' : met ? 'ok' : 'short',
    ]),
  ];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${[...text, ...(notes.length > 0 ? ['', ...notes] : [])].join('\n')}\n`;
}
