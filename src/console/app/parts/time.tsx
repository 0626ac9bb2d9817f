/** Times: how long ago, kept current, with the moment itself as the title. */
import { useSyncExternalStore } from 'react';
import { reports } from '../live.ts';

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

/** Now, to the second, in ms since 1970. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => present);
}

const units: [string, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** A span in its largest unit, such as "4 min". */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [unit, size] = units.find(([, one]) => seconds >= one) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function Age({ at, past = 'ago' }: { at: string; past?: string }) {
  const now = useNow();
  const ms = now - Date.parse(at);
  const text = ms < -5_000 ? `in ${span(-ms)}` : ms < 2_000 ? 'just now' : `${span(ms)} ${past}`.trim();
  return (
    <time dateTime={at} title={moment.format(new Date(at))}>
      {text}
    </time>
  );
}

/** The moment, and how long ago. */
export function Moment({ at }: { at: string }) {
  return (
    <>
      {moment.format(new Date(at))}{' '}
      <span className="soft">
        (<Age at={at} />)
      </span>
    </>
  );
}

/** How long ago a cluster reported: what it said then, or that it has said the same since. */
export function Reported({ clusterId, at }: { clusterId: string; at: string | undefined }) {
  const live = reports.use((all) => all.get(clusterId));
  const last = Math.max(live ?? 0, at === undefined ? 0 : Date.parse(at));
  return last === 0 ? <>none yet</> : <Age at={new Date(last).toISOString()} />;
}

export function LastReport({ clusterId, at, rest = '' }: Parameters<typeof Reported>[0] & { rest?: string }) {
  return (
    <p className="soft small">
      Last report: <Reported clusterId={clusterId} at={at} />
      {rest}
    </p>
  );
}
