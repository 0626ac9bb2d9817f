/** Signs heads of the audit trail, but only a head that continues the last signed one. */
import { setImmediate as nextTick } from 'node:timers/promises';
import {
  type AuditKey,
  findBreak,
  isSignedCheckpoint,
  isSignedHead,
  type SignedHead,
  trustedKeys,
} from '../../domain/audit/audit.ts';
import { DomainError } from '../../domain/error.ts';
import type { HeldKeys } from '../../domain/key-rotation.ts';
import {
  type AuditListing,
  addHead,
  findAuditHash,
  findCheckpoint,
  findLastHead,
  listAuditEntries,
} from '../../store/audit/audit.ts';
import type { Store } from '../../store/engine/index.ts';

export interface AuditSigner {
  /**
   * Signs the trail up to its last entry, unless that is signed; undefined while the trail is empty. Throws
   * `invalid_state` when an entry was changed or is missing. `by`: the store that writes the head, such as the leader's.
   */
  sign(by?: Store): Promise<SignedHead | undefined>;
}

/** An entry, as its successor refers to it. */
export interface ChainLink {
  seq: number;
  hash: string;
}

const pageSize = 200;

export function createSigner(store: Store, keys: () => HeldKeys<AuditKey>, now: () => number): AuditSigner {
  // Kept in memory, as the database may have been tampered with.
  let last: SignedHead | undefined;
  let running: Promise<unknown> = Promise.resolve();
  const queued = new Map<Store, Promise<SignedHead | undefined>>();

  async function signNow(by: Store): Promise<SignedHead | undefined> {
    const held = keys();
    const trusted = trustedKeys(held);
    last ??= await ownLastHead(store, trusted);
    if (last && !(await isInTrail(store, last))) {
      if (await isDeletedAsOld(store, trusted, last)) last = await ownLastHead(store, trusted);
      if (last && (await isDeletedAsOld(store, trusted, last))) last = undefined;
    }
    if (last && !(await isInTrail(store, last)))
      throw new DomainError(
        'invalid_state',
        `The audit trail was rewritten or cut: entry ${last.seq} is not the one that was signed at ${last.at}.`,
      );
    const start = last ?? (await beginning(store));
    let end: ChainLink = start;
    for await (const page of fittingPages(store, start)) {
      const { seq, hash } = page.at(-1) ?? end;
      end = { seq, hash };
      await nextTick();
    }
    if (end.seq === start.seq) return last;
    const head = held.used.sign({ ...end, at: new Date(now()).toISOString() });
    await addHead(by, head);
    last = head;
    return head;
  }

  return {
    /** A running signature may have read past an entry that is new, so a caller meanwhile gets the next one. */
    sign(by = store) {
      const joined = queued.get(by);
      if (joined) return joined;
      const run = running.then(() => {
        queued.delete(by);
        return signNow(by);
      });
      running = run.catch(() => {});
      queued.set(by, run);
      return run;
    },
  };
}

async function isInTrail({ read }: Store, { seq, hash }: SignedHead): Promise<boolean> {
  return (await findAuditHash(read, seq)) === hash;
}

/** The last head, if one of our keys signed it. Otherwise the whole trail is verified again. */
async function ownLastHead({ read }: Store, trusted: readonly string[]): Promise<SignedHead | undefined> {
  const head = await findLastHead(read);
  return head && trusted.includes(head.key) && isSignedHead(head) ? head : undefined;
}

/** The beginning of the trail: a checkpoint, or nothing. */
async function beginning({ read }: Store): Promise<ChainLink> {
  const checkpoint = await findCheckpoint(read);
  if (!checkpoint) return { seq: 0, hash: '' };
  if (isSignedCheckpoint(checkpoint)) return checkpoint;
  const message = `The checkpoint at which the audit trail begins, entry ${checkpoint.seq}, has a wrong signature.`;
  throw new DomainError('invalid_state', message);
}

/** The entries after `from`, page by page, up to `end`. Throws `invalid_state` at an entry that does not continue the one before. */
export async function* fittingPages(
  { read }: Store,
  from: ChainLink,
  end = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly AuditListing[], undefined> {
  let last = from;
  while (last.seq < end) {
    const limit = Math.min(pageSize, end - last.seq);
    const page = await listAuditEntries(read, {}, { after: last.seq, limit });
    const broken = findBreak(last, page);
    if (broken) {
      const message = `Entry ${broken.seq} of the audit trail does not fit: it was changed, or what stood before it.`;
      throw new DomainError('invalid_state', message);
    }
    if (page.length > 0) yield page;
    if (page.length < limit) return;
    last = page.at(-1) ?? last;
  }
}

/** True if another server, which has the same keys, has since deleted the entry by retention. */
async function isDeletedAsOld(
  { read }: Store,
  trusted: readonly string[],
  { seq }: SignedHead,
): Promise<boolean> {
  const checkpoint = await findCheckpoint(read);
  if (!checkpoint || checkpoint.seq < seq || !trusted.includes(checkpoint.key)) return false;
  return isSignedCheckpoint(checkpoint);
}
