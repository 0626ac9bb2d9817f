/**
 * Rules for groups at the issuer: refused at the start where they name what is not there, and applied to everyone of whom groups are
 * known, in the background. Where the configuration has none any more, what they gave is taken away.
 */
import type { GroupClaim, GroupRule, GroupSettings } from '../../domain/organizations/group-rules.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { followGroups } from '../../store/audit/follow-groups.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import { groupsInForce, listBehindGroups } from '../../store/organizations/apply-groups.ts';
import { listSlugs } from '../../store/organizations/organizations.ts';
import { findPerson } from '../../store/people/people.ts';
import { checkOrganizations } from '../config/groups.ts';

/** Throws `invalid_request` for a rule whose organization is not there. A retired one is passed over, as its owners retire it. */
export async function checkGroupRules(db: Reader, groups: GroupSettings | undefined): Promise<void> {
  if (groups) checkOrganizations(groups, await listSlugs(db));
}

/** Applies the rules once, and again after a fault. Returns how to stop. */
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
    const { changed, failed } = await applyToEach({ store, source, rules, log, stopping });
    log[changed > 0 ? 'info' : 'debug']('groups.applied', { people: changed });
    isDone = failed === 0;
  };
  return startRounds(round, { everyMs: 60_000, onFault }).stop;
}

/** More in one round are no fault of single people's. */
const mostFaults = 10;

interface Applying {
  store: Store;
  source: GroupClaim | undefined;
  rules: readonly GroupRule[];
  log: Logger;
  stopping: AbortSignal;
}

/** Applies the rules to people, one after the other. One whose turn fails keeps no other waiting. */
async function applyToEach(applying: Applying): Promise<{ changed: number; failed: number }> {
  const { store, source, rules, log, stopping } = applying;
  let [changed, failed] = [0, 0];
  for await (const { userId } of listBehindGroups(store.read, rules, source)) {
    if (stopping.aborted) break;
    try {
      if (await applyTo(userId, applying)) changed += 1;
    } catch (error) {
      if (++failed >= mostFaults || stopping.aborted) throw error;
      log.error('groups.apply.failed', { userId, error });
    }
  }
  return { changed, failed };
}

/** Applies the rules to a person as they are by now. Returns whether that changed anything. */
function applyTo(userId: string, { store, source, rules }: Applying): Promise<boolean> {
  return store.write(async (tx) => {
    const person = await findPerson(tx.db, userId);
    if (person?.lifecycleState !== 'active') return false;
    const groups = await groupsInForce(tx.db, userId, source);
    if (!groups) return false;
    return (await followGroups(tx, { userId, email: person.email }, rules, groups)).length > 0;
  });
}
