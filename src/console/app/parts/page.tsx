/** What every page begins with: its name, and one sentence that says how things are. */
import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { ApiError } from '../api.ts';
import { AsCommand, Button, type CommandOf } from './controls.tsx';

interface PageOptions {
  title: string;
  isWide?: boolean;
  sentence?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
}

export function Page({ title, sentence, actions, isWide = false, children }: PageOptions) {
  useEffect(() => {
    document.title = `${title} · Andromeda`;
  }, [title]);
  return (
    <article className={isWide ? 'page wide' : 'page'}>
      <header>
        <h1>{title}</h1>
        {actions && <div className="actions">{actions}</div>}
        {sentence && <p className="sentence">{sentence}</p>}
      </header>
      {children}
    </article>
  );
}

interface PanelOptions extends Partial<CommandOf> {
  title: ReactNode;
  tools?: ReactNode;
  children: ReactNode;
}

export function Panel({ title, tools, operation, children, ...command }: PanelOptions) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {(tools || operation) && (
          <div className="tools">
            {tools}
            {operation && <AsCommand {...command} operation={operation} />}
          </div>
        )}
      </header>
      {children}
    </section>
  );
}

export function Facts({ of, className = 'facts' }: { of: Record<string, ReactNode>; className?: string }) {
  return (
    <dl className={className}>
      {Object.entries(of)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Nothing here: why, and what to do next. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <p>{children}</p>
      {action}
    </div>
  );
}

export type Reading<T> = Pick<UseQueryResult<T>, 'data' | 'error'> & { refetch: () => unknown };

/** Reads that belong to one list: there is nothing of it before all of them are there, and it has failed where one has. */
export function together<Reads extends Record<string, Reading<unknown>>>(
  reads: Reads,
): Reading<{ [Name in keyof Reads]: Reads[Name] extends Reading<infer T> ? T : never }> {
  const all = Object.entries(reads);
  const isThere = all.every(([, { data }]) => data !== undefined);
  const data = Object.fromEntries(all.map(([name, one]) => [name, one.data]));
  return {
    data: (isThere ? data : undefined) as never,
    error: all.find(([, { error }]) => error)?.[1].error ?? null,
    refetch: () => Promise.all(all.flatMap(([, one]) => (one.error ? one.refetch() : []))),
  } as never;
}

/** Whether all of it is there, as it is now: only then may something be counted, or saved. */
export function isWhole({ data, error }: Reading<unknown>): boolean {
  return data !== undefined && !error;
}

/** A sentence about what a read gave; nothing is said while not all of it is there, as it is now. */
export function said<T>(of: Reading<T>, sentence: (data: T) => ReactNode): ReactNode {
  return isWhole(of) && sentence(of.data as T);
}

/** What a read gave, once it gave something; until then that it is under way. What went wrong is said, also where something older is there. */
export function Loaded<T>({ of, children }: { of: Reading<T>; children: (data: T) => ReactNode }) {
  if (of.data === undefined && !of.error) return <Loading />;
  return (
    <>
      {of.error && <Problem error={of.error} isOld={of.data !== undefined} again={() => void of.refetch()} />}
      {of.data !== undefined && children(of.data)}
    </>
  );
}

export function Loading() {
  return (
    <p className="loading" role="status">
      Loading…
    </p>
  );
}

interface ProblemOptions {
  error: unknown;
  /** What is shown is older: it could not be read again. */
  isOld?: boolean;
  again?: () => void;
}

export function Problem({ error, isOld = false, again }: ProblemOptions) {
  const text = error instanceof Error ? error.message : 'Something went wrong.';
  const isTheirs = error instanceof ApiError && error.status < 500;
  return (
    <div className="problem" role="alert">
      <p>
        {isOld && 'What is below may have changed: it could not be read again. '}
        {text}
      </p>
      {again && !isTheirs && (
        <Button className="second" onClick={again}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function NoClusters() {
  return (
    <Empty>
      You cannot see any clusters yet. Request <code>clusters.read</code> on “Access”.
    </Empty>
  );
}

/** The sign of the product. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <g transform="rotate(-32 16 16)" fill="none" stroke="currentColor">
        <ellipse cx="16" cy="16" rx="14.5" ry="7" strokeWidth="1.6" opacity=".4" />
        <ellipse cx="16" cy="16" rx="9.5" ry="4.4" strokeWidth="1.8" opacity=".75" />
        <ellipse cx="16" cy="16" rx="4.4" ry="2.5" fill="currentColor" />
      </g>
    </svg>
  );
}
