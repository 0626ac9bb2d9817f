/**
 * Rules for groups at the issuer: refused at the start where they name what is not there, and applied to everyone of whom groups are
 * known, in the background, by one server. Where the configuration has none any more, what they gave is taken away.
 */
import type { GroupRule } from '../../domain/organizations/group-rules.ts';
import type { GroupClaim } from '../../domain/people/groups.ts';
import type { Logger } from '../../lib/log.ts';
import { type Rounds, startRounds } from '../../lib/rounds.ts';
import { followGroups } from '../../store/audit/follow-groups.ts';
import type { Reader, Store } from '../../store/engine/index.ts';
import { groupsInForce, listBehindGroups } from '../../store/organizations/apply-groups.ts';
import { listSlugs } from '../../store/organizations/organizations.ts';
import type { Leases } from '../../store/servers/leases.ts';
import { checkOrganizations } from '../config/groups.ts';
import type { Config } from '../config/index.ts';

type Identity = Pick<Config['identity'], 'issuer' | 'groups'>;

/** The claim that the configuration names, with the rules; undefined where it names none. */
export function groupsOf({
  issuer,
  groups,
}: Identity): { claim: GroupClaim; rules: readonly GroupRule[] } | undefined {
  if (!groups || issuer === undefined) return undefined;
  return { claim: { issuer, claim: groups.claim }, rules: groups.rules };
}

/** Throws `invalid_request` for a rule whose organization is not there. A retired one is passed over, as its owners retire it. */
export async function checkGroupRules(db: Reader, { groups }: Identity): Promise<void> {
  if (groups) checkOrganizations(groups, await listSlugs(db));
}

/** Applies the rules, and again after a fault. Returns how to stop. */
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
      const round = async (stopping: AbortSignal) => {
        if (isDone) return;
        await applyToAll(lease.store, identity, { log, stopping });
        isDone = true;
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
  const { claim, rules = [] } = groupsOf(identity) ?? {};
  let changed = 0;
  for await (const person of listBehindGroups(store.read, rules, claim)) {
    if (stopping.aborted) return;
    const changes = await store.write(async (tx) => {
      // A token of theirs may have come first.
      const groups = await groupsInForce(tx.db, person.userId, claim);
      return groups ? followGroups(tx, person, rules, groups) : [];
    });
    if (changes.length > 0) changed += 1;
  }
  log[changed > 0 ? 'info' : 'debug']('groups.applied', { people: changed });
}
