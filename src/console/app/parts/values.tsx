/** Components for single values: a time, a state, a text that others wrote, a count. */
import { type ReactNode, useState, useSyncExternalStore } from 'react';
import { reports } from '../live.ts';
import { Button } from './page.tsx';

let present = Date.now();
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= setInterval(() => {
    present = Date.now();
    for (const one of watchers) one();
  }, 1_000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

export function useNow(): number {
  return useSyncExternalStore(watch, () => present);
}

const units: [string, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [unit, size] = units.find(([, one]) => seconds >= one) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function momentText(at: string): string {
  return moment.format(new Date(at));
}

export function Age({ at, past = 'ago' }: { at: string; past?: string }) {
  const now = useNow();
  const ms = now - Date.parse(at);
  const text = ms < -5_000 ? `in ${span(-ms)}` : ms < 2_000 ? 'just now' : `${span(ms)} ${past}`.trim();
  return (
    <time dateTime={at} title={momentText(at)}>
      {text}
    </time>
  );
}

export function Moment({ at }: { at: string }) {
  return (
    <>
      {momentText(at)}{' '}
      <span className="soft">
        (<Age at={at} />)
      </span>
    </>
  );
}

/** The age of a cluster's last report, also of one that changed nothing. */
export function Reported({ clusterId, at }: { clusterId: string; at: string | undefined }) {
  const live = reports.use((all) => all.get(clusterId));
  const last = Math.max(live ?? 0, at === undefined ? 0 : Date.parse(at));
  return last === 0 ? <>none yet</> : <Age at={new Date(last).toISOString()} />;
}

export function LastReport(of: Parameters<typeof Reported>[0]) {
  return (
    <p className="soft small">
      Last report: <Reported {...of} />
    </p>
  );
}

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

const most = 200;

export function Text({ of }: { of: string }) {
  const [isWhole, setWhole] = useState(false);
  if (of.length <= most) return <bdi className="text">{of}</bdi>;
  // Does not cut between the halves of a surrogate pair.
  const cut = of.slice(0, most).replace(/[\ud800-\udbff]$/, '');
  return (
    <span className="text">
      <bdi>{isWhole ? of : cut}</bdi>
      {isWhole ? ' ' : '… '}
      <Button className="link small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
        {isWhole ? 'Show less' : 'Show all'}
      </Button>
    </span>
  );
}

export function count(number: number, one: string, more = `${one}s`): string {
  return `${number} ${number === 1 ? one : more}`;
}

/** The first items and the number of others. `all`: the total, where `items` is only a part. */
export function firstOf(items: readonly string[], most: number, all = items.length): string {
  const more = all - Math.min(items.length, most);
  return `${items.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
