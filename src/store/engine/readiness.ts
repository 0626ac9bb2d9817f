/** The readiness check: whether the database takes writes, by writing a row. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../domain/error.ts';
import { databaseFault, faultMessage } from './engine.ts';
import type { Store } from './index.ts';

/** The shortest time between two writes, in ms, however many ask whether the service is ready. */
const intervalMs = 10_000;
/** A database that takes longer for one row serves no request in time. */
const limitMs = 5_000;
/** Time for finding the cause of a slow write. */
const askMs = 5_000;
/** Rows that need as much room as a write that people make, and more. */
const manyRows = 200;
const filling = 'x'.repeat(1_000);

/**
 * Makes a check that writes a row of its own and waits until it is on disk. It rejects with `service_unavailable` and
 * the fault; a success is good for an interval, a failure is tried again each second.
 */
export function createReadinessCheck(store: Store): () => Promise<void> {
  let last: { began: number; until: number; hasFailed: boolean; result: Promise<void> } | undefined;
  return () => {
    // This fault is known already, without a write.
    const failure = store.failure();
    if (databaseFault(failure) === 'former') return Promise.reject(unready(failure));
    const now = performance.now();
    // Whether a larger write found the disk full since the last check.
    const isFull = store.fullAt() >= (last?.began ?? 0);
    if (last && now < last.until && (last.hasFailed || !isFull)) return last.result;
    const write = writeRows(store, isFull ? manyRows : 1);
    const until = now + limitMs + askMs;
    const check = { began: now, until, hasFailed: false, result: withinLimit(store, write) };
    last = check;
    check.result.then(
      () => {
        check.until = performance.now() + intervalMs;
      },
      () => {
        check.until = performance.now() + 1_000;
        check.hasFailed = true;
      },
    );
    return check.result;
  };
}

async function writeRows(store: Store, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, i) => `readiness${i > 0 ? ` ${i} ${filling}` : ''}`);
  try {
    await store.write(async ({ db }) => {
      await db
        .insertInto('counters')
        .values(names.map((name) => ({ name, value: 1 })))
        .onConflict((conflict) =>
          conflict.column('name').doUpdateSet((eb) => ({ value: eb('counters.value', '+', 1) })),
        )
        .execute();
    });
    if (count === 1) return;
    await store.write(({ db }) => db.deleteFrom('counters').where('name', 'in', names.slice(1)).execute());
  } catch (error) {
    throw unready(error);
  }
}

/** A fault of the database as a reason not to be ready; any other error itself. */
function unready(error: unknown): unknown {
  const message = faultMessage(error);
  if (message === undefined) return error;
  return new DomainError('service_unavailable', `The database cannot be written: ${message}.`, {
    cause: error,
  });
}

async function withinLimit(store: Store, write: Promise<void>): Promise<void> {
  const limit = sleep(limitMs, 'late', { ref: false });
  if ((await Promise.race([write, limit])) !== 'late') return;
  const { reason, detail } = (await store.findObstacle()) ?? {
    reason: `the disk takes longer than ${limitMs / 1000} s`,
  };
  // `reason` is public; `detail` goes into the log alone.
  throw new DomainError('service_unavailable', `The database cannot be written: ${reason}.`, {
    cause: detail,
  });
}
