/** What the trials share: the lab under its load, and the lines that they report. */
import type { Changes } from './changes.ts';
import type { ClusterLab } from './lab.ts';
import type { Logins } from './logins.ts';
import type { Sessions } from './sessions.ts';
import type { SignIns } from './sign-ins.ts';
import type { SignedIn } from './signed-in.ts';
import type { Try } from './tries.ts';
import type { Writes } from './writes.ts';

export interface World {
  lab: ClusterLab;
  writes: Writes;
  sessions: Sessions;
  logins: Logins;
  signIns: SignIns;
  signedIn: SignedIn;
  changes: Changes;
  /** How much longer than the limits anything may take; 1 where they are to hold. */
  slack: number;
  say(sentence: string): void;
}

export interface Line {
  trial: string;
  what: string;
  found: string;
  limit: string;
  holds: boolean;
}

export const seconds = (ms: number) => (Number.isFinite(ms) ? `${(ms / 1_000).toFixed(1)} s` : 'never');

/** A line of what may be so many at most. */
export function atMost(trial: string, what: string, found: number, limit: number): Line {
  return { trial, what, found: `${found}`, limit: `≤ ${limit}`, holds: found <= limit };
}

/** A line of what may take so long at most. */
export function within(
  { slack }: Pick<World, 'slack'>,
  { trial, what, ms, limitMs }: { trial: string; what: string; ms: number; limitMs: number },
): Line {
  const limit = limitMs * slack;
  return { trial, what, found: seconds(ms), limit: `≤ ${seconds(limit)}`, holds: ms <= limit };
}

export function formatLines(lines: readonly Line[]): string {
  const head = ['trial', 'what', 'found', 'limit', ''];
  const rows = [
    head,
    ...lines.map((line) => [line.trial, line.what, line.found, line.limit, line.holds ? 'ok' : 'FAILED']),
  ];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The longest time since then in which nothing of these that began succeeded. */
export function longestWithout(all: readonly Try[], since: number): number {
  const good = all.filter(({ attempts }) => attempts !== undefined).map(({ at, ms }) => at + ms);
  const times = [since, ...good.filter((time) => time > since).sort((one, other) => one - other)];
  return Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}
