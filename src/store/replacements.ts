/**
 * Platform writes: a document replaced whole. Naturally repeatable, so they take no idempotency key and no reason; what
 * they change, and who was refused, is in the audit trail like every other write.
 */
import type { Caller } from '../domain/operation.ts';
import { type About, recordRefusal } from './attempts.ts';
import { appendAuditEntry } from './audit.ts';
import type { Store, Tx } from './index.ts';

/** A replacement as it was asked for. */
export interface ReplacementRequest {
  operation: string;
  caller: Caller;
  about: About;
  now: number;
}

/**
 * Runs a replacement in one transaction. `apply` throws if the caller may not make it, and says in `changed` what it
 * changed, for people; nothing where the document stands as it did, and then there is nothing to record.
 */
export async function runReplacement<T>(
  store: Store,
  request: ReplacementRequest,
  apply: (tx: Tx) => Promise<{ result: T; changed: readonly string[] }>,
): Promise<T> {
  const { operation, caller, about } = request;
  try {
    return await store.write(async (tx) => {
      const { result, changed } = await apply(tx);
      if (changed.length > 0) {
        await appendAuditEntry(tx, {
          ...about,
          actorUserId: caller.userId,
          operation,
          reason: '',
          sourceAddress: caller.sourceAddress,
          result: 'done',
          details: `Changed: ${changed.join(', ')}`,
        });
      }
      return result;
    });
  } catch (error) {
    await recordRefusal(store, { ...request, headers: { auditReason: '' } }, error);
    throw error;
  }
}
