/** A state: a shape, a word and a colour, never the colour alone. */
import type { ReactNode } from 'react';

export type Kind = 'good' | 'busy' | 'warn' | 'bad' | 'none';

const shapes: Record<Kind, ReactNode> = {
  good: <circle cx="6" cy="6" r="5" fill="currentColor" />,
  busy: (
    <>
      <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" strokeWidth="1.6" />
      <path d="M6 1.8a4.2 4.2 0 0 1 0 8.4z" fill="currentColor" />
    </>
  ),
  warn: <path d="M6 .8 11.6 11H.4z" fill="currentColor" />,
  bad: <path d="M1 1h10v10H1z" fill="currentColor" />,
  none: <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" strokeWidth="1.6" />,
};

export function Shape({ kind }: { kind: Kind }) {
  return (
    <svg className={`shape ${kind}`} viewBox="0 0 12 12" aria-hidden="true">
      {shapes[kind]}
    </svg>
  );
}

export function State({ kind, children }: { kind: Kind; children: ReactNode }) {
  return (
    <span className={`state ${kind}`}>
      <Shape kind={kind} />
      {children}
    </span>
  );
}
