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
  let rounds: Rounds | undefined;
  return leases.want('groups', {
    begin(lease) {
      const onFault = (error: unknown) => log.error('groups.apply.failed', { error });
      let isDone = false;
      const { source, rules = [] } = groupsOf(identity) ?? {};
      const round = async (stopping: AbortSignal) => {
        if (!isDone) await applyToAll(lease.store, identity, { log, stopping });
        isDone = true;
        if (source !== 'scim') return undefined;
        await applyToPushed(lease.store, rules, stopping);
        return pushedEveryMs;
      };
      rounds = startRounds(round, { everyMs: 60_000, onFault });
    },
    async end() {
      await rounds?.stop();
    },
  });
}

async function applyToAll(
  store: Store,
  identity: Identity,
  { log, stopping }: { log: Logger; stopping: AbortSignal },
): Promise<void> {
  const { source, rules = [] } = groupsOf(identity) ?? {};
  let changed = 0;
  for await (const person of listBehindGroups(store.read, rules, source)) {
    if (stopping.aborted) return;
    const changes = await store.write(async (tx) => {
      // A token of theirs may have come first.
      const groups = await groupsInForce(tx.db, person.userId, source);
      return groups ? followGroups(tx, person, rules, groups) : [];
    });
    if (changes.length > 0) changed += 1;
  }
  log[changed > 0 ? 'info' : 'debug']('groups.applied', { people: changed });
}

/** Who was taken out of a group is to lose what it gave within a second or two. */
const pushedEveryMs = 1_000;
/** In one write, for which others wait. */
const atOnce = 20;

/** Applies the rules to people who, or whose groups, were pushed since. */
async function applyToPushed(
  store: Store,
  rules: readonly GroupRule[],
  stopping: AbortSignal,
): Promise<void> {
  while (!stopping.aborted && (await listBehindPeople(store.read, 1)).length > 0)
    await store.write(async (tx) => {
      const people = await listBehindPeople(tx.db, atOnce);
      for (const { state, ...person } of people) {
        const groups = state === 'active' ? await groupsInForce(tx.db, person.userId, 'scim') : undefined;
        if (groups) await followGroups(tx, person, rules, groups);
      }
      const ids = people.map(({ userId }) => userId);
      await markBehind(tx, ids, false);
    });
}
