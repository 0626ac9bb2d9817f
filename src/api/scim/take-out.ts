/** Taking everything from a person whom the identity provider no longer lets in. */
import { DomainError } from '../../domain/error.ts';
import { inPart, type Tx } from '../../store/engine/index.ts';
import { listLiveGrants, revokeGrant } from '../../store/organizations/grants.ts';
import { removeMembership } from '../../store/organizations/membership-changes.ts';
import { listMembershipsOf } from '../../store/organizations/memberships.ts';
import { deactivatePerson, updateStaffKeys } from '../../store/people/people.ts';
import { listSshKeys, revokeSshKey } from '../../store/people/ssh-keys.ts';

/**
 * Ends sign-in, SSH and whatever else a person holds, as an operator does. What an operator would be refused does not stop it: the last
 * owner of an organization stays its owner on paper, without being let in. Returns sentences on what was left.
 */
export async function takeOut(tx: Tx, userId: string): Promise<string[]> {
  const left: string[] = [];
  const tryTo = async (what: string, body: () => Promise<unknown>) => {
    try {
      await inPart(tx, body);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      left.push(`${what}: ${error.message}`);
    }
  };
  for (const { organizationId } of await listMembershipsOf(tx.db, userId)) {
    await tryTo(`membership in ${organizationId}`, () => removeMembership(tx, { organizationId, userId }));
  }
  for (const { id } of await listLiveGrants(tx.db, userId, tx.now)) await revokeGrant(tx, id);
  for (const key of await listSshKeys(tx.db, userId)) await revokeSshKey(tx, { userId, keyId: key.id });
  await tryTo('staff keys', () => updateStaffKeys(tx, { userId, keys: [] }));
  await deactivatePerson(tx, userId);
  return left;
}
