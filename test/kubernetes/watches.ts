/** Watches at the fake API server: versions, events as a selector sees them, bookmarks, expiry, the end in time. */
import type { Answer } from './recorded.ts';
import { recorded } from './recorded.ts';

interface Watched {
  metadata: { name: string; labels?: Record<string, string>; resourceVersion?: string };
}

interface Change {
  version: number;
  resource: string;
  before: Watched | undefined;
  after: Watched | undefined;
}

export interface Changes {
  /** The newest version. */
  readonly version: number;
  /** Gives a change its version, and tells who watches. */
  next(change: (version: number) => Omit<Change, 'version'>): void;
  /** Forgets the history: a watch from before it is too old. */
  expire(): void;
  /** Writes events from a version on until the time is over, or `signal` is aborted. */
  watch(
    about: { resource: string; query: URLSearchParams; labels: Record<string, string>; signal: AbortSignal },
    write: (line: string) => void,
  ): Promise<void>;
}

export function createChanges(): Changes {
  const changes: Change[] = [];
  const listeners = new Set<(change: Change) => void>();
  let version = 100;
  let oldest = 0;
  return {
    get version() {
      return version;
    },
    next(change) {
      version += 1;
      const next = { version, ...structuredClone(change(version)) };
      changes.push(next);
      for (const listener of listeners) listener(next);
    },
    expire() {
      version += 1;
      oldest = version;
      changes.length = 0;
    },
    watch({ resource, query, labels, signal }, write) {
      const from = Number(query.get('resourceVersion'));
      const line = (value: unknown) => write(`${JSON.stringify(value)}\n`);
      if (from < oldest) {
        const [event] = (recorded('watch/watch-expired-410') as Answer & { body: unknown[] }).body;
        line(event);
        return Promise.resolve();
      }
      const selects = (one: Watched | undefined) =>
        one !== undefined &&
        Object.entries(labels).every(([key, value]) => one.metadata.labels?.[key] === value);
      const notify = (change: Change) => {
        if (change.resource !== resource || change.version <= from) return;
        const [had, has] = [selects(change.before), selects(change.after)];
        if (!had && !has) return;
        const type = had && has ? 'MODIFIED' : has ? 'ADDED' : 'DELETED';
        const object = (has ? change.after : change.before) as Watched;
        const metadata = { ...object.metadata, resourceVersion: String(change.version) };
        line({ type, object: { ...object, metadata } });
      };
      for (const change of changes) notify(change);
      listeners.add(notify);
      return new Promise((resolve) => {
        const seconds = Number(query.get('timeoutSeconds') ?? 60);
        const bookmark = setTimeout(
          () => line({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version) } } }),
          Math.max(0, seconds - 2) * 1000,
        );
        const end = () => {
          clearTimeout(timer);
          clearTimeout(bookmark);
          listeners.delete(notify);
          resolve();
        };
        const timer = setTimeout(end, seconds * 1000);
        signal.addEventListener('abort', end);
      });
    },
  };
}
