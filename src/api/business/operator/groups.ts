/** Groups at the issuer: their members, and the effects of new rules. */
import { invalidState, notFound } from '../../../domain/error.ts';
import { type GroupClaim, refuseUnknownSlugs, ruleOf } from '../../../domain/organizations/group-rules.ts';
import { type Reader, tryOut } from '../../../store/engine/index.ts';
import {
  applyGroups,
  type GroupChange,
  listBehindGroups,
  type PersonBehind,
} from '../../../store/organizations/apply-groups.ts';
import { listSlugs } from '../../../store/organizations/organizations.ts';
import { countByGroup, countKnownGroups, findGroups } from '../../../store/people/groups.ts';
import { findPersonByEmail } from '../../../store/people/people.ts';
import { listRestarts, listSlurmAccounts, takePlan } from '../member-plan.ts';
import type { BusinessDeps, BusinessReply } from '../operation.ts';
import { staffReads } from './about.ts';

type Plan = BusinessReply<'operatorPlanGroups'>;

const mostListed = 10_000;

export const operatorListGroups = staffReads<'operatorListGroups'>(async (deps, { query }) => {
  const { store } = deps;
  const { source, rules } = requireGroups(deps);
  const people = new Map<string, number>(rules.map(({ group }) => [group, 0]));
  for (const [group, count] of await countByGroup(store.read, source)) people.set(group, count);
  const only = query.email === undefined ? undefined : await groupsOf(store.read, source, query.email);
  const sendable = rules.map((rule) => ({ ...rule, permissions: [...rule.permissions] }));
  const rulesOf = Map.groupBy(sendable, ({ group }) => group);
  const groups = [...people]
    .filter(([group]) => only?.has(group) ?? true)
    .map(([group, count]) => ({ group, people: count, rules: rulesOf.get(group) ?? [] }))
    .sort((a, b) => b.rules.length - a.rules.length || b.people - a.people || (a.group < b.group ? -1 : 1));
  return {
    claim: source.claim,
    people: await countKnownGroups(store.read, source),
    groups: groups.slice(0, mostListed),
  };
});

/** The changes that new rules would cause, found by applying them in a transaction that is rolled back. */
export const operatorPlanGroups = staffReads<'operatorPlanGroups'>(async (deps, { caller, body }) => {
  const { store } = deps;
  takePlan(caller.userId);
  const { source } = requireGroups(deps);
  const rules = body.rules.map((rule, index) => ruleOf(rule, `rules[${index}]`));
  refuseUnknownSlugs(rules, await listSlugs(store.read), 'rules');
  // Read before the transaction, which blocks other writes and so should only make the changes.
  const behind: PersonBehind[] = [];
  for await (const person of listBehindGroups(store.read, rules, source)) behind.push(person);
  const people = await countKnownGroups(store.read, source);
  return tryOut(store, async (tx) => {
    const before = await listSlurmAccounts(tx);
    const changes: GroupChange[] = [];
    for (const person of behind) changes.push(...(await applyGroups(tx, person, rules, person.groups)));
    const emails = new Map(behind.map(({ userId, email }) => [userId, email]));
    const kept = changes.filter(({ isKept }) => isKept).map(({ userId }) => emails.get(userId) ?? '');
    const restarts = await listRestarts(tx, before);
    return { people, changes: countsOf(changes), kept_owners: [...new Set(kept)].sort(), restarts };
  });
});

/** Throws `invalid_state` if groups are not configured. */
function requireGroups({ groups }: BusinessDeps) {
  if (groups) return groups;
  throw invalidState(
    'The configuration has no groups. Set `identity: { groups: { claim: groups } }`: without rules, groups are only noted.',
  );
}

async function groupsOf(db: Reader, source: GroupClaim, email: string): Promise<Set<string>> {
  const person = await findPersonByEmail(db, email);
  if (!person) throw notFound('There is no such person.');
  return new Set((await findGroups(db, person.id, source))?.groups);
}

function countsOf(changes: readonly GroupChange[]): Plan['changes'] {
  const counts = new Map<string, Plan['changes'][number]>();
  for (const { slug: organization, gained, lost } of changes) {
    const count = (what: string, side: 'gain' | 'lose') => {
      const key = `${organization} ${what}`;
      const known = counts.get(key) ?? { organization, what, gain: 0, lose: 0 };
      known[side] += 1;
      counts.set(key, known);
    };
    for (const what of gained) count(what, 'gain');
    for (const what of lost) count(what, 'lose');
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}
