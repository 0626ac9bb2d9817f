/** Conditions and sizes as text for people. */
import type { Platform } from '../net/operations.ts';

const answers: Record<string, string> = { True: 'yes', False: 'no', Unknown: 'unknown' };

/** `yes`, or `no, NodesDown: two of four nodes are down`; undefined where nothing is known. */
export function describeCondition(condition: Platform['Condition'] | undefined): string | undefined {
  if (!condition) return undefined;
  const { status, reason, message } = condition;
  const answer = answers[status] ?? status;
  const why = [reason, message].filter(Boolean).join(': ');
  return status === 'True' || why === '' ? answer : `${answer}, ${why}`;
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `100GiB`, `1.5TiB`; without a space, so that a row can be split at spaces. */
export function formatBytes(bytes: number | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 1024 ** power).toFixed(1))}${units[power]}`;
}
