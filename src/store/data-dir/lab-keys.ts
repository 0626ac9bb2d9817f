/** SSH keys that a lab file gives members. One that the file leaves out stays, and one that its person revoked stays revoked. */
import { keyLabel, parseSshPublicKey } from '../../domain/access/ssh-key.ts';
import type { Lab } from '../../domain/clusters/lab.ts';
import type { LabMember } from '../../domain/clusters/lab-member.ts';
import { invalidState } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import { present } from '../../domain/present.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { findRow } from '../engine/rows.ts';
import { findPerson, findPersonByEmail } from '../people/people.ts';
import { createSshKey } from '../people/ssh-keys.ts';

/** The lab without the keys that their persons have registered already. Throws `invalid_state` where another person has. */
export async function withNewKeys(db: Reader, lab: Lab): Promise<Lab> {
  const organizations = lab.organizations?.map(async (organization) => {
    const members = organization.members?.map((member) => withNewKeysOf(db, member));
    return { ...organization, ...present({ members: members && (await Promise.all(members)) }) };
  });
  return { ...lab, ...present({ organizations: organizations && (await Promise.all(organizations)) }) };
}

async function withNewKeysOf(db: Reader, member: LabMember): Promise<LabMember> {
  if (!member.keys) return member;
  const person = await findPersonByEmail(db, member.email);
  const added: string[] = [];
  for (const line of member.keys) {
    const { fingerprint } = parseSshPublicKey(line);
    const row = await findRow(db, 'ssh_keys', { fingerprint });
    if (!row) added.push(line);
    else if (row.user_id !== person?.id) {
      const other = await findPerson(db, row.user_id);
      throw invalidState(`The key ${fingerprint} of ${member.email} is, or was, that of ${other?.email}.`);
    }
  }
  return { ...member, keys: added };
}

export async function registerKeys(
  tx: Tx,
  registration: { userId: string; keys: readonly string[]; actor: string; commandId: string | null },
): Promise<void> {
  const { userId, keys, actor: createdBy } = registration;
  const commandId = registration.commandId ?? newId('command', tx.now);
  for (const line of keys) {
    const parsed = parseSshPublicKey(line);
    // Of a member of several organizations.
    if (await findRow(tx.db, 'ssh_keys', { fingerprint: parsed.fingerprint, user_id: userId })) continue;
    const key = { ...parsed, label: keyLabel(parsed.comment) };
    await createSshKey(tx, { userId, key, createdBy, commandId });
  }
}
