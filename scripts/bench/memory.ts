/** The row about a process's memory. */
import type { Row } from './table.ts';

const aimMiB = 250;

/** `ours` and `reference` in MiB; `name` says what the reference is. */
export function memoryRow(row: string, ours: number, reference: number, name: string): Row {
  return {
    row,
    ours: `${ours.toFixed(0)} MiB`,
    reference: `${reference.toFixed(0)} MiB  ${name}`,
    ratio: ours / reference,
    aim: `< ${aimMiB} MiB`,
    met: ours < aimMiB,
  };
}
