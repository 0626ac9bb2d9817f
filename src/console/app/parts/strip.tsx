/** The convergence strip: how far a change has come, from what was asked to what a cluster shows, and what is missing. */
import { useState } from 'react';
import { live } from '../live.ts';
import { Shape, span, Text, useNow } from './values.tsx';

export interface Step {
  name: string;
  state: 'done' | 'busy' | 'failed' | 'waiting';
  at?: string | undefined;
}

/** Steps of which each needs those before it; `state` is that of the first that is not done. */
export function stepsOf(
  state: Step['state'],
  steps: readonly (Pick<Step, 'name' | 'at'> & { isDone: boolean })[],
): Step[] {
  const first = steps.findIndex(({ isDone }) => !isDone);
  return steps.map(({ isDone, ...step }, index) => ({
    ...step,
    state: isDone ? 'done' : index === first ? state : 'waiting',
  }));
}

const labels = { done: 'done', busy: 'under way', failed: 'failed', waiting: 'not yet' } as const;
const kinds = { done: 'good', busy: 'busy', failed: 'bad', waiting: 'none' } as const;

interface StripOptions {
  of: string;
  steps: readonly Step[];
  missing?: string | undefined;
}

export function Strip({ of, steps, missing }: StripOptions) {
  const now = useNow();
  // The same may be followed again, for another change.
  const witnessed = useWitnessed(`${of} ${steps[0]?.at ?? ''}`, steps);
  const timed = steps.map((step) => ({
    ...step,
    at: step.at ?? (step.state === 'done' ? witnessed[step.name] : undefined),
  }));
  const isWhole = steps.every(({ state }) => state === 'done');
  return (
    <div className="strip">
      <ol>
        {timed.map((step, index) => (
          <li key={step.name} className={step.state}>
            {index > 0 && <span className="line">{elapsed(timed.slice(0, index), step, now)}</span>}
            <span className="dot">
              <Shape kind={kinds[step.state]} />
              <span>{step.name}</span>
              <span className="hidden">: {labels[step.state]}</span>
            </span>
          </li>
        ))}
      </ol>
      {!isWhole && missing !== undefined && (
        <p role="status">
          <Text of={missing} />
        </p>
      )}
    </div>
  );
}

/**
 * When each step was reached that the server has no time of, as this tab saw it; kept for the tab, so that a reload forgets none of
 * it. What was done already when this page first showed it was reached at some time before, and nothing is said of when.
 */
function useWitnessed(of: string, steps: readonly Step[]): Readonly<Record<string, string>> {
  const [seen, setSeen] = useState<ReadonlyMap<string, Step['state']>>(new Map());
  const [reached, setReached] = useState(() => witnessedOf(of));
  const [followed, setFollowed] = useState(of);
  if (followed !== of) {
    setFollowed(of);
    setSeen(new Map());
    setReached(witnessedOf(of));
  } else if (steps.some(({ name, state }) => seen.get(name) !== state)) {
    const fresh = steps.filter(
      ({ name, state }) => state === 'done' && ![undefined, 'done'].includes(seen.get(name)),
    );
    const names = fresh.map(({ name }) => name);
    if (names.length > 0) setReached(witness(of, names));
    setSeen(new Map(steps.map(({ name, state }) => [name, state])));
  }
  return reached;
}

/**
 * Since the step before: what it took, or how long it has been taking; where it is not known when that was reached, since the last
 * one of which it is.
 */
function elapsed(before: readonly Step[], step: Step, now: number): string {
  const from = before.findLast(({ at }) => at !== undefined)?.at;
  const to = step.state === 'busy' ? now : step.state === 'done' ? Date.parse(step.at ?? '') : Number.NaN;
  if (from === undefined || !(to > Date.parse(from))) return '';
  return `${span(to - Date.parse(from))}${before.at(-1)?.at === undefined ? ' in all' : ''}`;
}

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

function witnessedOf(of: string): Followed['reached'] {
  return readAll().find((one) => one.of === of)?.reached ?? {};
}

/** Notes that steps are reached now; nothing where it may have been long before. Returns what is known. */
function witness(of: string, names: readonly string[]): Followed['reached'] {
  const { since } = live.get();
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
