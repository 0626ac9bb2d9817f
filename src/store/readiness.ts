/** Whether the database takes writes, asked of the database itself. */
import { DomainError } from '../domain/error.ts';
import { faultMessage } from './fault.ts';
import type { Store } from './index.ts';

/** The disk is asked at most this often, in ms, however many ask whether the service is ready. */
const intervalMs = 10_000;
/** A disk that takes longer for one row does not serve anyone. */
const limitMs = 5_000;

/**
 * A check that writes a row of its own and waits until it is on disk. Rejects with `service_unavailable` and what is
 * wrong; a success is good for an interval, a failure is tried again each second.
 */
export function createReadinessCheck(store: Store): () => Promise<void> {
  let last: { until: number; result: Promise<void> } | undefined;
  return () => {
    const now = performance.now();
    if (last && now < last.until) return last.result;
    const check = { until: now + limitMs, result: withinLimit(writeRow(store)) };
    last = check;
    check.result.then(
      () => {
        check.until = performance.now() + intervalMs;
      },
      () => {
        check.until = performance.now() + 1_000;
      },
    );
    return check.result;
  };
}

async function writeRow(store: Store): Promise<void> {
  try {
    await store.write(async ({ db }) => {
      await db
        .insertInto('counters')
        .values({ name: 'readiness', value: 1 })
        .onConflict((conflict) =>
          conflict.column('name').doUpdateSet((eb) => ({ value: eb('counters.value', '+', 1) })),
        )
        .execute();
    });
  } catch (error) {
    const message = faultMessage(error);
    if (message === undefined) throw error;
    throw new DomainError('service_unavailable', `The database cannot be written: ${message}.`, {
      cause: error,
    });
  }
}

async function withinLimit(write: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `The database cannot be written: the disk takes longer than ${limitMs / 1000} s.`;
    timer = setTimeout(() => reject(new DomainError('service_unavailable', message)), limitMs).unref();
  });
  await Promise.race([write, late]).finally(() => clearTimeout(timer));
}
