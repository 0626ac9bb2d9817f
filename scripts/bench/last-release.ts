/** The figures of the last release, in docs/performance.md, and which rows of this run are worse. */
import { readFileSync } from 'node:fs';
import type { Row } from './table.ts';

interface Figure {
  ratio: number;
  /** Between which the single rounds were. */
  spread: readonly [number, number];
  better: 'more' | 'less';
}

export interface LastRelease {
  version: string;
  figures: ReadonlyMap<string, Figure>;
}

/** What fell by this share is a finding. */
const share = 0.1;
const line =
  /^\| (?<name>\S.*?)(?: \*)? \| (?<ratio>[\d.]+) \| (?<low>[\d.]+)–(?<high>[\d.]+) \| (?<better>more|less) \|$/;

export function readLastRelease(): LastRelease {
  return parseLastRelease(readFileSync(new URL('../../docs/performance.md', import.meta.url), 'utf8'));
}

/** Throws where the page has no release, or a line of its table is none. */
export function parseLastRelease(page: string): LastRelease {
  const [, version, text] = /^## Release (\S+)$([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(page) ?? [];
  if (version === undefined || text === undefined) throw new Error('docs/performance.md names no release');
  const figures = new Map<string, Figure>();
  const [, , ...lines] = text.split('\n').filter((one) => one.startsWith('|'));
  for (const one of lines) {
    const parts = line.exec(one)?.groups;
    const { name = '', ratio, low, high, better } = parts ?? {};
    const figure = { ratio: Number(ratio), spread: [Number(low), Number(high)] as const };
    if (!parts || figures.has(name) || figure.ratio < figure.spread[0] || figure.ratio > figure.spread[1])
      throw new Error(`docs/performance.md: this line cannot be compared with: ${one}`);
    figures.set(name, { ...figure, better: better === 'more' ? 'more' : 'less' });
  }
  return { version, figures };
}

/** The rows by what they are called in the page: one below another with that one's name, and by its reference where it has no name. */
export function namesOf(rows: readonly Row[]): string[] {
  let above = '';
  return rows.map(({ row, reference }) => {
    if (row !== '' && !row.startsWith(' ')) {
      above = row;
      return row;
    }
    return `${above} · ${row.trim() || reference.split('  ').at(-1)}`;
  });
}

/** A sentence for each row that fell by a tenth, and beyond its spread. */
export function findWorse(rows: readonly Row[], { version, figures }: LastRelease): string[] {
  const names = namesOf(rows);
  return rows.flatMap(({ ratio }, index) => {
    const name = names[index] ?? '';
    const before = figures.get(name);
    if (!before) return [];
    const { ratio: was, spread, better } = before;
    const [low, high] = spread;
    const isWorse =
      better === 'more'
        ? ratio <= was * (1 - share) && ratio < low
        : ratio >= was * (1 + share) && ratio > high;
    return isWorse
      ? [`worse than ${version}: ${name}: ${ratio.toFixed(2)}, was ${was} (${low}–${high})`]
      : [];
  });
}
