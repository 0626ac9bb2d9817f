/** What the audit trail says of a change over SCIM: the installation itself is who did it, on the identity provider's word. */
import { appendAuditEntry } from '../../store/audit/audit.ts';
import type { Tx } from '../../store/engine/index.ts';
import { systemUserId } from '../../store/people/people.ts';

type Operation =
  | 'scimCreateUser'
  | 'scimChangeUser'
  | 'scimDeactivateUser'
  | 'scimDeleteUser'
  | 'scimCreateGroup'
  | 'scimChangeGroup'
  | 'scimDeleteGroup';

/** Writes down what was done, in the same transaction. */
export async function recordScim(
  tx: Tx,
  operation: Operation,
  entry: { address: string; target: string; subjectUserId?: string; details: string },
): Promise<void> {
  const { address, ...about } = entry;
  await appendAuditEntry(tx, {
    ...about,
    actorUserId: systemUserId,
    operation,
    reason: 'SCIM',
    sourceAddress: address,
    result: 'done',
  });
}
