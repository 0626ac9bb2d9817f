/** What is said at the edge of every page: what was just done, and that the page is not current. */
import { useEffect, useSyncExternalStore } from 'react';
import { live } from '../live.ts';
import { announcement } from '../source.ts';
import { Age, useNow } from './time.tsx';

export function Announcements() {
  return (
    <>
      <Done />
      <Offline />
    </>
  );
}

const shownMs = 6_000;

/** The element is always there: a screen reader announces what changes in it, not what appears with it. */
function Done() {
  const done = announcement.use((one) => one);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => announcement.set(undefined), shownMs);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <div role="status" className={done ? 'toast' : 'hidden'}>
      {done && <p key={done.count}>{done.text}</p>}
    </div>
  );
}

/** A stream ends now and then, and is back within this. */
const graceMs = 3_000;

/** That the page is not current, and how old what it shows is. The page behind it is dimmed by its style. */
function Offline() {
  const isOnline = useSyncExternalStore(watchNetwork, () => navigator.onLine);
  const lost = live.use((one) => one.lost);
  const now = useNow();
  const isShown = lost !== undefined && (!isOnline || now - lost.at > graceMs);
  return (
    <div className={isShown ? 'offline' : undefined}>
      <p role="status">
        {isShown && `${isOnline ? 'The console does not answer.' : 'You are offline.'} It updates by itself.`}
      </p>
      {isShown && (
        <p className="small">
          This page shows what was known <Age at={new Date(lost.heardAt).toISOString()} />.
        </p>
      )}
    </div>
  );
}

function watchNetwork(watcher: () => void): () => void {
  const events = ['online', 'offline'];
  for (const event of events) window.addEventListener(event, watcher);
  return () => {
    for (const event of events) window.removeEventListener(event, watcher);
  };
}
