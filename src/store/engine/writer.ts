/**
 * Runs writes one after the other, in the order in which they came. Those that wait when a commit begins share the
 * next one: it is flushed once for all of them, and none is answered before that. Each succeeds or fails by itself:
 * where one fails half-way, the commit is given up, and each of them tried in one of its own. (A savepoint for each
 * costs as much as what most of them write.)
 */
import type { Transaction } from 'kysely';
import type { Schema } from '../generated/schema.ts';
import { type Connections, countChanges, isHeldUp, isOfAll, isOfBegin } from './engine.ts';

type Body<T> = (db: Transaction<Schema>) => Promise<T>;

export type Writer = <T>(body: Body<T>, options: { flush: boolean }) => Promise<T>;

interface WaitingWrite {
  body: Body<unknown>;
  flush: boolean;
  /** Settled once the outcome is on disk. */
  answer: PromiseWithResolvers<unknown>;
}

/** The most writes in one commit. */
const most = 64;

/** Makes the writer of a database; its bodies may be run again. */
export function createWriter({ transact }: Pick<Connections, 'transact'>): Writer {
  const waiting: WaitingWrite[] = [];
  let running = false;

  async function run(): Promise<void> {
    while (waiting.length > 0) await runSome();
    running = false;
  }

  /** Commits the waiting writes together, with those that come before the last of them is done. */
  async function runSome(): Promise<void> {
    const joined: WaitingWrite[] = [];
    const flush = waiting.slice(0, most).some((one) => one.flush);
    const together = await outcomeOf(
      transact(
        async (db) => {
          // If the transaction is run again, on another connection, nothing of the first run is left.
          waiting.unshift(...joined.splice(0));
          const outcomes: PromiseSettledResult<unknown>[] = [];
          for (let next = waiting[0]; next && joined.length < most; next = waiting[0]) {
            // A write that came meanwhile and needs a flush waits for the next commit if this one has none.
            if (next.flush && !flush) break;
            joined.push(next);
            waiting.shift();
            outcomes.push(await outcomeUnlessHalf(db, next.body));
          }
          return outcomes;
        },
        { flush },
      ),
    );
    if (together.status === 'rejected') return giveUp({ joined, waiting, failure: together, transact });
    for (const [index, one] of joined.entries()) {
      const outcome = together.value[index];
      if (outcome) settle(one, outcome);
    }
  }

  return <T>(body: Body<T>, { flush }: { flush: boolean }) => {
    const answer = Promise.withResolvers<unknown>();
    waiting.push({ body, flush, answer });
    // Runs after the requests that have arrived as well: a transaction does not let them in once it has begun.
    if (!running) setImmediate(run);
    running = true;
    return answer.promise as Promise<T>;
  };
}

function settle({ answer }: WaitingWrite, outcome: PromiseSettledResult<unknown>): void {
  if (outcome.status === 'fulfilled') answer.resolve(outcome.value);
  else answer.reject(outcome.reason);
}

interface FailedCommit extends Pick<Connections, 'transact'> {
  joined: WaitingWrite[];
  waiting: WaitingWrite[];
  failure: PromiseRejectedResult;
}

/** After a failed commit, rejects its writes, or tries each of them in a commit of its own. */
async function giveUp({ joined, waiting, failure, transact }: FailedCommit): Promise<void> {
  const { reason } = failure;
  // The commit did not begin: the writes that wait would only wait for the same again.
  const isForAll = joined.length === 0 || isOfBegin(reason);
  const failed = isForAll ? [...joined, ...waiting.splice(0)] : joined;
  // A lock that one of them waited for does not concern the others. After a fault that concerns all, none is tried again: each
  // would wait as long, or be made twice.
  const isTriedAgain = joined.length > 1 && !isForAll && (isHeldUp(reason) || !isOfAll(reason));
  for (const one of failed) settle(one, isTriedAgain ? await outcomeOf(transact(one.body, one)) : failure);
}

/** The outcome of a body that can be committed with others': done, or failed before it wrote. Throws for others. */
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
