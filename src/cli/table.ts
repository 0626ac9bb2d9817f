/** Tables for people: columns padded to their widest cell, no colour, no borders, one row a line. */
import { visibleLine } from '../domain/visible-text.ts';

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
