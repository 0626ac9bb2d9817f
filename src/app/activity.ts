/**
 * A part of the composition root: how much goes on, for operators who ask how it was last night. It is made from the events
 * that other folders log, as the metrics are, and added up in the store once a minute.
 */
import { messageOf } from '../lib/error-message.ts';
import type { EventLevel, EventName, LogEvents, Logger } from '../lib/log.ts';
import { type Activity, addActivity } from '../store/activity.ts';
import type { Store } from '../store/index.ts';

export interface ActivityCounts {
  /** The logger to hand to the parts: it counts some events and passes all on. */
  watch(log: Logger): Logger;
  /** Begins to write to the store; returns how to stop, writing what is left. */
  begin(store: Store, log: Logger): () => Promise<void>;
  /** Writes what was counted since. */
  write(): Promise<void>;
}

const tickMs = 10_000;
const writeMs = 60_000;

/** What is known of a side of a cluster: a change that is not in force, a pass that failed. */
interface SideState {
  isBehind: boolean;
  isFailing: boolean;
}

export function createActivityCounts(): ActivityCounts {
  const sides = new Map<string, SideState>();
  let counts = nothing();
  let store: Store | undefined;

  const side = ({ cluster, side: name }: LogEvents['sync.changed']) => {
    const key = `${cluster}/${name}`;
    const state = sides.get(key) ?? { isBehind: false, isFailing: false };
    sides.set(key, state);
    return state;
  };
  const forget = ({ cluster, side: name }: LogEvents['sync.left']) => void sides.delete(`${cluster}/${name}`);
  const takes: { [Name in EventName]?: (fields: LogEvents[Name]) => void } = {
    'gateway.login.accepted': () => {
      counts.logins += 1;
    },
    'gateway.login.refused': () => {
      counts.refused += 1;
    },
    'sync.changed': (about) => {
      side(about).isBehind = true;
    },
    'sync.passed': ({ behindMs, ...about }) => {
      Object.assign(side(about), { isBehind: behindMs > 0, isFailing: false });
    },
    'sync.failed': ({ behindMs, ...about }) => {
      Object.assign(side(about), { isBehind: behindMs > 0, isFailing: true });
    },
    'sync.released': forget,
    'sync.left': forget,
  };

  function tick() {
    const seconds = tickMs / 1_000;
    for (const { isBehind, isFailing } of sides.values()) {
      counts.watched += seconds;
      if (isBehind) counts.behind += seconds;
      if (isFailing) counts.failing += seconds;
    }
  }

  async function write(): Promise<void> {
    const counted = counts;
    if (!store || Object.values(counted).every((one) => one === 0)) return;
    counts = nothing();
    try {
      await addActivity(store, counted);
    } catch (error) {
      // A full disk: it is counted on, and written when there is room.
      for (const name of Object.keys(counted) as (keyof Activity)[]) counts[name] += counted[name];
      throw error;
    }
  }

  return {
    watch(log) {
      const at =
        (level: EventLevel) =>
        <Name extends EventName>(event: Name, fields: LogEvents[Name]) => {
          takes[event]?.(fields);
          log[level](event, fields);
        };
      return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    },
    begin(given, log) {
      store = given;
      const ticking = setInterval(tick, tickMs).unref();
      const writeOrLog = () =>
        write().catch((error: unknown) => log.error('activity.failed', { error: messageOf(error) }));
      const writing = setInterval(() => void writeOrLog(), writeMs).unref();
      return async () => {
        clearInterval(ticking);
        clearInterval(writing);
        await writeOrLog();
        store = undefined;
      };
    },
    write,
  };
}

function nothing(): Activity {
  return { logins: 0, refused: 0, watched: 0, behind: 0, failing: 0 };
}
