/** Applies the rules for groups at the issuer to a person, with an audit entry for each change. */
import { type GroupRule, reasonOfGroups } from '../../domain/organizations/group-rules.ts';
import type { Tx } from '../engine/index.ts';
import { applyGroups, type GroupChange } from '../organizations/apply-groups.ts';
import { systemUserId } from '../people/people.ts';
import { appendAuditEntry } from './audit.ts';

/** Applies `rules` to a person in these groups, as the installation itself. Returns the changes. */
export async function followGroups(
  tx: Tx,
  person: { userId: string; email: string },
  rules: readonly GroupRule[],
  groups: readonly string[],
): Promise<GroupChange[]> {
  const changes = await applyGroups(tx, person, rules, groups);
  for (const change of changes) {
    const { organizationId, userId } = change;
    await appendAuditEntry(tx, {
      actorUserId: systemUserId,
      operation: 'followGroups',
      target: `${organizationId}/${userId}`,
      organizationId,
      subjectUserId: userId,
      reason: reasonOfGroups(change.groups),
      result: 'done',
      details: detailsOf(change),
    });
  }
  return changes;
}

function detailsOf({ gained, lost, isKept }: GroupChange): string {
  if (isKept) return 'stays: the last owner';
  const changes = [...gained.map((one) => `+${one}`), ...lost.map((one) => `-${one}`)];
  return changes.join(', ') || 'as before, by hand';
}
