/** What the executable says of where it is from: the commit, and when that was made, so that the same source makes the same bytes. */
import { execFileSync } from 'node:child_process';

export interface Stamp {
  /** With `-modified` where files differ from it; `unknown` outside of a Git checkout. */
  commit: string;
  /** RFC 3339. $SOURCE_DATE_EPOCH where it is set (https://reproducible-builds.org/specs/source-date-epoch/), else the commit's. */
  date: string;
}

export function stampOf(root: string): Stamp {
  const epoch = process.env['SOURCE_DATE_EPOCH'];
  const commit = git(root, 'rev-parse', '--short=12', 'HEAD') ?? 'unknown';
  const isModified = (git(root, 'status', '--porcelain', '--untracked-files=no') ?? '') !== '';
  const seconds = Number(epoch ?? git(root, 'log', '-1', '--format=%ct') ?? 0);
  return {
    commit: isModified ? `${commit}-modified` : commit,
    date: new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'),
  };
}

function git(root: string, ...args: string[]): string | undefined {
  try {
    return execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined;
  }
}
