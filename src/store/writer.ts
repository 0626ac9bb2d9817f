/**
 * Writes, one after the other, in the order in which they came. Those that wait when a commit begins share the next
 * one: the disk is asked once for all of them, and none is answered before it has answered. Each stands or falls by
 * itself: where one fails half-way, the commit is given up, and each of them tried in one of its own. (A savepoint for
 * each costs as much as what most of them write.)
 */
import type { Transaction } from 'kysely';
import { type Connections, countChanges, isHeldUp, isOfAll } from './engine.ts';
import type { Schema } from './schema.ts';

type Body<T> = (db: Transaction<Schema>) => Promise<T>;

export type Writer = <T>(body: Body<T>, options: { flush: boolean }) => Promise<T>;

interface Waiting {
  body: Body<unknown>;
  flush: boolean;
  /** Told once the outcome is on disk. */
  settle(outcome: PromiseSettledResult<unknown>): void;
}

/** A commit is not put off for longer than this by those that join it, and has no more of them than this. */
const longestMs = 5;
const most = 64;

/** Makes the writer of a database; its bodies may be run again. */
export function createWriter({ transact }: Pick<Connections, 'transact'>): Writer {
  const waiting: Waiting[] = [];
  let running = false;

  async function run(): Promise<void> {
    while (waiting.length > 0) await runSome();
    running = false;
  }

  async function runSome(): Promise<void> {
    const [first] = waiting;
    if (!first) return;
    if (waiting.length === 1) {
      waiting.shift();
      first.settle(await outcomeOf(transact(first.body, first)));
      return;
    }
    const joined: Waiting[] = [];
    const now: { running?: Waiting | undefined } = {};
    const flush = waiting.slice(0, most).some((one) => one.flush);
    const together = await outcomeOf(
      transact(
        async (db) => {
          // Where it is run again, on another connection, nothing of the first time is there.
          waiting.unshift(...joined.splice(0));
          const outcomes: PromiseSettledResult<unknown>[] = [];
          const until = performance.now() + longestMs;
          for (let next = waiting[0]; next && joined.length < most; next = waiting[0]) {
            if (joined.length > 0 && performance.now() > until) break;
            // One that came meanwhile and wants more of the disk than this commit gives waits for the next.
            if (next.flush && !flush) break;
            joined.push(next);
            waiting.shift();
            now.running = next;
            outcomes.push(await outcomeUnlessHalf(db, next.body));
          }
          now.running = undefined;
          return outcomes;
        },
        { flush },
      ),
    );
    if (together.status === 'fulfilled') {
      for (const [index, one] of joined.entries()) {
        const outcome = together.value[index];
        if (outcome) one.settle(outcome);
      }
      return;
    }
    await giveUp({ joined, waiting, running: now.running, failure: together, transact });
  }

  return (body, { flush }) =>
    new Promise((resolve, reject) => {
      waiting.push({
        body,
        flush,
        settle: (outcome) =>
          outcome.status === 'fulfilled' ? resolve(outcome.value as never) : reject(outcome.reason),
      });
      if (running) return;
      running = true;
      // Behind the requests that have arrived as well: a transaction does not let them in once it has begun.
      setImmediate(run);
    });
}

interface Failed extends Pick<Connections, 'transact'> {
  joined: Waiting[];
  waiting: Waiting[];
  /** The one in whose body it failed. */
  running: Waiting | undefined;
  failure: PromiseRejectedResult;
}

/** Says so to those of whom none was made, or has others of them made. */
async function giveUp({ joined, waiting, running, failure, transact }: Failed): Promise<void> {
  const settleAll = (some: Waiting[]) => {
    for (const one of some) one.settle(failure);
  };
  // It did not begin: whoever waits would only wait for the same again.
  if (joined.length === 0) return settleAll(waiting.splice(0));
  // What one of them waited for is no matter of the others.
  if (running && isHeldUp(failure.reason)) {
    waiting.unshift(...joined.filter((one) => one !== running));
    return settleAll([running]);
  }
  // Tried again, each of them would wait as long as all did, or be made twice.
  if (isOfAll(failure.reason)) return settleAll(joined);
  // For the fault of one or of none of them: each is tried by itself.
  for (const one of joined) one.settle(await outcomeOf(transact(one.body, one)));
}

/** What became of a body that can be committed with others': done, or failed before it wrote. Throws for others. */
async function outcomeUnlessHalf(
  db: Transaction<Schema>,
  body: Body<unknown>,
): Promise<PromiseSettledResult<unknown>> {
  const before = countChanges(db);
  const outcome = await outcomeOf(body(db));
  if (outcome.status === 'rejected' && countChanges(db) !== before) throw outcome.reason;
  return outcome;
}

async function outcomeOf<T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> {
  const [outcome] = await Promise.allSettled([promise]);
  return outcome;
}
