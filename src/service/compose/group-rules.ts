/**
 * Applies the rules for groups at the issuer, in the background, to all people with known groups. Where the
 * configuration has no rules any more, removes what they gave.
 */
import type { GroupClaim, GroupRule, GroupSettings } from '../../domain/organizations/group-rules.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { followGroups } from '../../store/audit/follow-groups.ts';
import type { Store } from '../../store/engine/index.ts';
import { groupsInForce, listBehindGroups } from '../../store/organizations/apply-groups.ts';
import { findPerson } from '../../store/people/people.ts';

/** More faults than this in one round are not the fault of single people. */
const mostFaults = 10;

/** Applies the rules person by person, and again after a fault, which does not stop the others. Returns a function that stops. */
export function applyGroupRules({
  store,
  groups,
  log,
}: {
  store: Store;
  groups: GroupSettings | undefined;
  log: Logger;
}): () => Promise<void> {
  const { source, rules = [] } = groups ?? {};
  const onFault = (error: unknown) => log.error('groups.apply.failed', { error });
  let isDone = false;
  const round = async (stopping: AbortSignal) => {
    if (isDone) return;
    let [changed, failed] = [0, 0];
    for await (const { userId } of listBehindGroups(store.read, rules, source)) {
      if (stopping.aborted) return;
      try {
        if (await applyTo(userId, { store, source, rules })) changed += 1;
      } catch (error) {
        if (++failed >= mostFaults || stopping.aborted) throw error;
        log.error('groups.apply.failed', { userId, error });
      }
    }
    log[changed > 0 ? 'info' : 'debug']('groups.applied', { people: changed });
    isDone = failed === 0;
  };
  return startRounds(round, { everyMs: 60_000, onFault }).stop;
}

/** Applies the rules to a person's current groups. Returns whether that changed anything. */
function applyTo(
  userId: string,
  { store, source, rules }: { store: Store; source: GroupClaim | undefined; rules: readonly GroupRule[] },
): Promise<boolean> {
  return store.write(async (tx) => {
    const person = await findPerson(tx.db, userId);
    if (person?.lifecycleState !== 'active') return false;
    const groups = await groupsInForce(tx.db, userId, source);
    if (!groups) return false;
    return (await followGroups(tx, { userId, email: person.email }, rules, groups)).length > 0;
  });
}
