/** The convergence strip: the steps of a change from desired to observed, their times, and the reason for a delay. */
import { useState } from 'react';
import { live } from '../live.ts';
import { Shape, span, Text, useNow } from './values.tsx';

export interface Step {
  name: string;
  state: 'done' | 'busy' | 'failed' | 'waiting';
  at?: string | undefined;
}

/** Each step needs those before it; `state` applies to the first that is not done. */
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
  // The start time distinguishes changes of the same subject.
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
 * The times at which this tab saw steps reached, for steps without a time from the server; kept in the tab's session storage,
 * to survive a reload. A step that was done when the page first showed it has no time.
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
 * The time that a step took, or has been taking, since the step before; if that one has no known time, since the last step
 * that has one ("in all").
 */
function elapsed(before: readonly Step[], step: Step, now: number): string {
  const from = before.findLast(({ at }) => at !== undefined)?.at;
  const to = step.state === 'busy' ? now : step.state === 'done' ? Date.parse(step.at ?? '') : Number.NaN;
  if (from === undefined || !(to > Date.parse(from))) return '';
  return `${span(to - Date.parse(from))}${before.at(-1)?.at === undefined ? ' in all' : ''}`;
}

interface FollowedChange {
  /** The subject of the change, and its start time. */
  of: string;
  /** The times (RFC 3339) at which steps were reached, by name of the step. */
  reached: Record<string, string>;
}

const stored = 'andromeda-witnessed';
const mostFollowed = 50;
/** For this long after an interruption of the stream no time is noted: the step may have been reached during it. */
const settledMs = 2_000;

function readAll(): FollowedChange[] {
  try {
    return JSON.parse(sessionStorage.getItem(stored) ?? '[]') as FollowedChange[];
  } catch {
    return [];
  }
}

function witnessedOf(of: string): FollowedChange['reached'] {
  return readAll().find((one) => one.of === of)?.reached ?? {};
}

/** Notes the current time for steps, unless they may have been reached earlier. Returns all known times. */
function witness(of: string, names: readonly string[]): FollowedChange['reached'] {
  const { since } = live.get();
  const known = witnessedOf(of);
  if (since === undefined || Date.now() - since < settledMs) return known;
  const at = new Date().toISOString();
  const reached = { ...known, ...Object.fromEntries(names.map((name) => [name, at])) };
  const others = readAll().filter((one) => one.of !== of);
  try {
    sessionStorage.setItem(stored, JSON.stringify([{ of, reached }, ...others].slice(0, mostFollowed)));
  } catch {
    // Session storage is full: the times last until the page reloads.
  }
  return reached;
}
