/** Writes that are taken back: to know what they would come to. */
import { sql } from 'kysely';
import type { Store, Tx } from './index.ts';

/** What a write would come to; nothing of it stays, and nobody is told of it. */
export async function tryOut<T>(store: Pick<Store, 'write'>, body: (tx: Tx) => Promise<T>): Promise<T> {
  const outcome: { value?: T } = {};
  const takenBack = new Error('taken back');
  try {
    await store.write(async (tx) => {
      outcome.value = await body(tx);
      throw takenBack;
    });
  } catch (error) {
    if (error !== takenBack) throw error;
  }
  return outcome.value as T;
}

/** Does part of a write that is tried out; what it wrote is taken back where it throws, and the rest can go on. */
export async function inPart<T>(tx: Tx, body: () => Promise<T>): Promise<T> {
  await sql`savepoint part`.execute(tx.db);
  try {
    return await body();
  } catch (error) {
    await sql`rollback to part`.execute(tx.db);
    throw error;
  } finally {
    await sql`release part`.execute(tx.db);
  }
}
