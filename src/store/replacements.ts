/**
 * Platform writes: a document replaced whole. Naturally repeatable, so they need no idempotency key and no reason, and take
 * both; what they change, and who was refused, is in the audit trail like every other write.
 */
import type { Caller, WriteHeaders } from '../domain/operation.ts';
import { type About, recordRefusal } from './attempts.ts';
import { appendAuditEntry } from './audit.ts';
import { runCommand } from './commands.ts';
import type { Store, Tx } from './index.ts';

/** A replacement as it was asked for. */
export interface ReplacementRequest {
  operation: string;
  caller: Caller;
  about: About;
  /** Left out: as if none of them was sent. */
  headers?: Pick<WriteHeaders, 'idempotencyKey' | 'auditReason'>;
  /** Path parameters and body: what is sent again under the same key has the same. */
  meaning?: readonly unknown[];
  now: number;
}

type Apply<T> = (tx: Tx) => Promise<{ result: T; changed: readonly string[] }>;

/**
 * Runs a replacement in one transaction. `authorize` throws if the caller may not make it. `apply` says in `changed` what it
 * changed, for people; nothing where the document stands as it did, and then there is nothing to record. With an idempotency
 * key it is done once, and what `apply` returned is kept as the result.
 */
export async function runReplacement<T>(
  store: Store,
  request: ReplacementRequest,
  { authorize, apply }: { authorize(tx: Tx): Promise<void>; apply: Apply<T> },
): Promise<T> {
  const { operation, caller, about, meaning = [], now, headers } = request;
  const { idempotencyKey, auditReason = '' } = headers ?? {};
  if (idempotencyKey !== undefined) {
    const command = { idempotencyKey, auditReason };
    const done = await runCommand<T>(
      store,
      { caller, command, now },
      {
        operation,
        meaning,
        about,
        authorize,
        async apply(tx) {
          const { result, changed } = await apply(tx);
          return { result, about: { details: detailsOf(changed) } };
        },
      },
    );
    return done.result;
  }
  try {
    return await store.write(async (tx) => {
      await authorize(tx);
      const { result, changed } = await apply(tx);
      if (changed.length > 0) {
        await appendAuditEntry(tx, {
          ...about,
          actorUserId: caller.userId,
          operation,
          reason: auditReason,
          sourceAddress: caller.sourceAddress,
          result: 'done',
          details: detailsOf(changed),
        });
      }
      return result;
    });
  } catch (error) {
    await recordRefusal(store, { ...request, headers: { auditReason } }, error);
    throw error;
  }
}

function detailsOf(changed: readonly string[]): string {
  return changed.length === 0 ? 'Nothing changed' : `Changed: ${changed.join(', ')}`;
}
