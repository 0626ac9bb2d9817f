/** What every page begins with: its name, and one sentence that says how things are. */
import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { ApiError } from '../api.ts';

export function Page({
  title,
  sentence,
  actions,
  isWide = false,
  children,
}: {
  title: string;
  /** For tables of many columns. */
  isWide?: boolean;
  sentence?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
}) {
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

export function Panel({
  title,
  tools,
  children,
}: {
  title: ReactNode;
  tools?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {tools && <div className="tools">{tools}</div>}
      </header>
      {children}
    </section>
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

/** What a read gave, once it gave something; until then that it is under way, or what went wrong. */
export function Loaded<T>({ of, children }: { of: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error) return <Problem error={of.error} again={() => void of.refetch()} />;
  return (
    <p className="loading" role="status">
      Loading…
    </p>
  );
}

export function Problem({ error, again }: { error: unknown; again?: () => void }) {
  const text = error instanceof Error ? error.message : 'Something went wrong.';
  const isTheirs = error instanceof ApiError && error.status < 500;
  return (
    <div className="problem" role="alert">
      <p>{text}</p>
      {again && !isTheirs && (
        <button type="button" className="second" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function NoClusters() {
  return (
    <Empty>
      You cannot see any clusters yet. Request <code>clusters.read</code> on “My access”.
    </Empty>
  );
}
