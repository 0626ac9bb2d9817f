/**
 * Rules for groups at the issuer: refused at the start where they name what is not there, and applied to everyone of whom groups are
 * known, in the background, by one server. Where the configuration has none any more, what they gave is taken away.
 */
import type { GroupRule } from '../../domain/organizations/group-rules.ts';
import type { GroupSource } from '../../domain/people/groups.ts';
import type { Logger } from '../../lib/log.ts';
import { type Rounds, startRounds } from '../../lib/rounds.ts';
import { followGroups } from '../../store/audit/follow-groups.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import { groupsInForce, listBehindGroups } from '../../store/organizations/apply-groups.ts';
import { listSlugs } from '../../store/organizations/organizations.ts';
import { findPerson } from '../../store/people/people.ts';
import { listBehindPeople, markBehind } from '../../store/people/pushed-groups.ts';
import type { Leases } from '../../store/servers/leases.ts';
import { checkOrganizations } from '../config/groups.ts';
import type { Config } from '../config/index.ts';

type Identity = Pick<Config['identity'], 'issuer' | 'groups'>;

/** Where the configuration has groups from, with the rules; undefined where it says nothing of them. */
export function groupsOf({
  issuer,
  groups,
}: Identity): { source: GroupSource; rules: readonly GroupRule[] } | undefined {
  if (!groups || issuer === undefined) return undefined;
  const { claim, rules } = groups;
  return { source: claim === undefined ? 'scim' : { issuer, claim }, rules };
}

/** Throws `invalid_request` for a rule whose organization is not there. A retired one is passed over, as its owners retire it. */
export async function checkGroupRules(db: Reader, { groups }: Identity): Promise<void> {
  if (groups) checkOrganizations(groups, await listSlugs(db));
}

/** Applies the rules, again after a fault, and to people as their groups are pushed. Returns how to stop. */
export function applyGroupRules({
  leases,
  identity,
  log,
}: {
  leases: Leases;
  identity: Identity;
  log: Logger;
}): () => Promise<void> {
  const { source, rules = [] } = groupsOf(identity) ?? {};
  const isPushed = source === 'scim';
  let rounds: Rounds | undefined;
  return leases.want('groups', {
    begin({ store }) {
      const onFault = (error: unknown) => log.error('groups.apply.failed', { error });
      let isDone = false;
      const round = async (stopping: AbortSignal) => {
        if (isDone && !isPushed) return undefined;
        const people = isDone ? listBehindPeople(store.read) : listBehindGroups(store.read, rules, source);
        const { changed, failed } = await applyToEach(people, { store, source, rules, log, stopping });
        if (changed > 0 || !isDone)
          log[changed > 0 ? 'info' : 'debug']('groups.applied', { people: changed });
        isDone ||= failed === 0;
        return isPushed && failed === 0 ? pushedEveryMs : undefined;
      };
      rounds = startRounds(round, { everyMs: isPushed ? 10_000 : 60_000, onFault });
    },
    async end() {
      await rounds?.stop();
    },
  });
}

/** Who was taken out of a group is to lose what it gave within a second or two. */
const pushedEveryMs = 1_000;
/** More in one round are no fault of single people's. */
const mostFaults = 10;

interface Applying {
  store: Store;
  source: GroupSource | undefined;
  rules: readonly GroupRule[];
  log: Logger;
  stopping: AbortSignal;
}

/** Applies the rules to people, one after the other. One whose turn fails keeps no other waiting. */
async function applyToEach(
  people: AsyncIterable<{ userId: string }>,
  applying: Applying,
): Promise<{ changed: number; failed: number }> {
  const { log, stopping } = applying;
  let [changed, failed] = [0, 0];
  for await (const { userId } of people) {
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
    await markBehind(tx, [userId], false);
    const person = await findPerson(tx.db, userId);
    if (person?.lifecycleState !== 'active') return false;
    const groups = await groupsInForce(tx.db, userId, source);
    if (!groups) return false;
    return (await followGroups(tx, { userId, email: person.email }, rules, groups)).length > 0;
  });
}
