/** The convergence strip: how far a change has come, from what was asked to what a cluster shows, and what is missing. */
import { useState } from 'react';
import { Shape } from './state.tsx';
import { span, useNow } from './time.tsx';

export interface Step {
  name: string;
  state: 'done' | 'busy' | 'failed' | 'waiting';
  /** When it was reached, or begun. */
  at?: string | undefined;
}

const words = { done: 'done', busy: 'under way', failed: 'failed', waiting: 'not yet' } as const;
const kinds = { done: 'good', busy: 'busy', failed: 'bad', waiting: 'none' } as const;

export function Strip({ steps, missing }: { steps: readonly Step[]; missing?: string | undefined }) {
  const now = useNow();
  const witnessed = useWitnessed(steps);
  const timed = steps.map((step) => ({ ...step, at: step.at ?? witnessed.get(step.name) }));
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
              <span className="hidden">: {words[step.state]}</span>
            </span>
          </li>
        ))}
      </ol>
      {!isWhole && missing !== undefined && <p role="status">{missing}</p>}
    </div>
  );
}

/** When each step was reached that was not yet when this page first showed it: an API tells of what is, not since when. */
function useWitnessed(steps: readonly Step[]): ReadonlyMap<string, string> {
  const [seen, setSeen] = useState<ReadonlyMap<string, Step['state']>>(new Map());
  const [reached, setReached] = useState<ReadonlyMap<string, string>>(new Map());
  if (steps.some(({ name, state }) => seen.get(name) !== state)) {
    const fresh = steps.filter(
      ({ name, state }) => state === 'done' && ![undefined, 'done'].includes(seen.get(name)),
    );
    if (fresh.length > 0) {
      const at = new Date().toISOString();
      setReached(new Map([...reached, ...fresh.map(({ name }) => [name, at] as const)]));
    }
    setSeen(new Map(steps.map(({ name, state }) => [name, state])));
  }
  return reached;
}

/** Since the step before: what it took, or how long it has been taking. */
function elapsed(before: readonly Step[], step: Step, now: number): string {
  const from = before.findLast(({ at }) => at !== undefined)?.at;
  if (from === undefined) return '';
  if (step.state === 'busy') return span(now - Date.parse(from));
  return step.state === 'done' && step.at !== undefined && step.at > from
    ? span(Date.parse(step.at) - Date.parse(from))
    : '';
}
