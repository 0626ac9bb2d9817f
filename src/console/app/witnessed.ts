/**
 * When steps of what is followed were reached, as this tab saw it: the server records what is, and of few steps since when. It is
 * kept for the tab, so that a reload forgets none of it.
 */
import { liveSince } from './live.ts';

interface Followed {
  /** What is followed, and since when. */
  of: string;
  /** By name of the step: when it was reached. RFC 3339. */
  reached: Record<string, string>;
}

const stored = 'andromeda-witnessed';
const mostFollowed = 50;
/** For this long after an interruption no time is noted: a step that is read now may have been reached during it. */
const settledMs = 2_000;

function readAll(): Followed[] {
  try {
    return JSON.parse(sessionStorage.getItem(stored) ?? '[]') as Followed[];
  } catch {
    return [];
  }
}

export function witnessedOf(of: string): Followed['reached'] {
  return readAll().find((one) => one.of === of)?.reached ?? {};
}

/** Notes that steps are reached now; nothing where it may have been long before. Returns what is known. */
export function witness(of: string, names: readonly string[]): Followed['reached'] {
  const since = liveSince();
  const known = witnessedOf(of);
  if (since === undefined || Date.now() - since < settledMs) return known;
  const at = new Date().toISOString();
  const reached = { ...known, ...Object.fromEntries(names.map((name) => [name, at])) };
  const others = readAll().filter((one) => one.of !== of);
  try {
    sessionStorage.setItem(stored, JSON.stringify([{ of, reached }, ...others].slice(0, mostFollowed)));
  } catch {
    // The tab has no room: it lasts until the page is loaded again.
  }
  return reached;
}
