/**
 * Refusals that strangers can cause at any rate, for a log that they must not fill: the first few of a source and reason in an
 * interval are logged one by one, and the others are summed up in one line at its end. Bounded in sources.
 */
import { sourceNetwork } from './source-address.ts';

const intervalMs = 10_000;
/** Sources and reasons that are counted separately in an interval; the refusals of further sources are one sum. */
const mostKinds = 50;
const further = 'further sources';

export interface RefusalTally {
  count(address: string, reason: string): boolean;
  flush(): void;
}

/** `each`: how many are logged one by one. `sumUp` gets the number of those that were not. */
export function createRefusalTally(
  each: number,
  sumUp: (source: string, reason: string, refusals: number) => void,
): RefusalTally {
  const kinds = new Map<string, { source: string; reason: string; refusals: number }>();
  let timer: NodeJS.Timeout | undefined;

  function flush() {
    clearTimeout(timer);
    timer = undefined;
    const counted = [...kinds.values()];
    kinds.clear();
    for (const { source, reason, refusals } of counted)
      if (refusals > each) sumUp(source, reason, refusals - each);
  }

  return {
    count(address, reason) {
      const source = sourceNetwork(address);
      timer ??= setTimeout(flush, intervalMs).unref();
      const isFurther = kinds.size >= mostKinds && !kinds.has(`${source} ${reason}`);
      const key = `${isFurther ? further : source} ${reason}`;
      // None of the further ones has a line of its own.
      const kind =
        kinds.get(key) ??
        (isFurther ? { source: further, reason, refusals: each } : { source, reason, refusals: 0 });
      kinds.set(key, kind);
      kind.refusals += 1;
      return kind.refusals <= each;
    },
    flush,
  };
}
