/** What approving a request would do on the clusters, shown before it is approved. */
import { useQuery } from '@tanstack/react-query';
import { approvedEnd, withApproved } from '../../../domain/access/request.ts';
import type { MemberChange } from '../people.ts';
import { readMemberPermissions } from '../reads.ts';
import { useWho } from '../who.tsx';
import type { AccessRequest } from './access-requests.tsx';
import { Consequences, usePlan } from './consequences.tsx';

interface PlanOptions {
  request: AccessRequest;
  term?: string | null;
  now: number;
}

/** `term`: another end than was asked for; `now`: settled when it is opened, so that one plan is asked for once. */
export function ApprovalPlan({ request: { user_id: userId, permissions, hours }, term, now }: PlanOptions) {
  const members = useQuery(readMemberPermissions(useWho()));
  const held = members.data?.members.find(({ user_id: id }) => id === userId);
  const changes: MemberChange[] = [];
  if (held) {
    const before = held.permissions.map((key) => ({ key, expiresAt: held.expires_at?.[key] ?? null }));
    const after = withApproved(before, permissions, approvedEnd({ hours: hours ?? null }, term, now));
    changes.push({
      change: 'permissions',
      user_id: userId,
      permissions: after.map(({ key }) => key),
      expires_at: Object.fromEntries(after.map(({ key, expiresAt }) => [key, expiresAt])),
    });
  }
  return <Consequences of={usePlan(changes)} />;
}
