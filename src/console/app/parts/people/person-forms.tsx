/** Making an account, staff keys, and ending and restoring an account. */
import { useState } from 'react';
import { operation } from '../../api.ts';
import { installationTopics, type Person } from '../../reads.ts';
import { CheckList, Field } from '../controls.tsx';
import { WriteDialog } from '../write.tsx';

type StaffKey = 'staff.read' | 'staff.audit' | 'staff.operate';

const staffKeys: readonly { key: StaffKey; hint: string }[] = [
  { key: 'staff.read', hint: 'See everything in the installation' },
  { key: 'staff.audit', hint: 'Read and verify the audit trail' },
  { key: 'staff.operate', hint: 'Change everything; includes both others' },
];

export function AddPerson({ close }: { close: () => void }) {
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const body = { email: email.trim(), ...(name.trim() && { name: name.trim() }) };
  return (
    <WriteDialog
      title="Add person"
      operation={operation('post', '/operator/people', {})}
      topics={installationTopics}
      body={email.trim() === '' ? undefined : body}
      label="Add"
      cli={`andromeda admin person add ${email || 'cy@physics.example'}`}
      close={close}
    >
      <Field id="person-email" label="Address" type="email" required value={email} onChange={setEmail} />
      <Field id="person-name" label="Name" hint="left empty: the address" value={name} onChange={setName} />
      <p className="soft small">
        The account belongs to the person who signs in with this verified address. It has no organization and
        no permissions yet.
      </p>
    </WriteDialog>
  );
}

export interface PersonOptions {
  person: Person;
  close: () => void;
}

export function StaffKeys({ person: { id, primary_email: email, staff_keys }, close }: PersonOptions) {
  const held = staff_keys as StaffKey[];
  const [wanted, setWanted] = useState<readonly StaffKey[]>(held);
  const gained = wanted.filter((key) => !held.includes(key));
  const lost = held.filter((key) => !wanted.includes(key));
  return (
    <WriteDialog
      title={`Staff keys of ${email}`}
      operation={operation('put', '/operator/people/{userID}/staff-keys', { userID: id })}
      topics={[...installationTopics, 'me']}
      body={gained.length + lost.length > 0 ? { staff_keys: wanted.toSorted() } : undefined}
      label="Save"
      danger={gained.includes('staff.operate')}
      cli={`andromeda admin person staff ${email} ${wanted.join(' ') || '--none'}`}
      close={close}
    >
      <CheckList
        legend={<legend className="hidden">Staff keys</legend>}
        items={staffKeys}
        chosen={wanted}
        onChange={setWanted}
      />
      <p role="status">
        {gained.length > 0 && <>Gains {gained.join(', ')}, at once. </>}
        {lost.length > 0 && <>Loses {lost.join(', ')}, at once. </>}
        {gained.includes('staff.operate') && <>They can then do everything that you can.</>}
        {gained.length + lost.length === 0 && <>No changes yet.</>}
      </p>
    </WriteDialog>
  );
}

export function Lifecycle({
  person: { id, primary_email: email, lifecycle_state: state },
  close,
}: PersonOptions) {
  const isActive = state === 'active';
  const verb = isActive ? 'Deactivate' : 'Reactivate';
  const to = isActive ? 'deactivate' : 'reactivate';
  return (
    <WriteDialog
      title={`${verb} ${email}?`}
      operation={operation('post', `/operator/people/{userID}/${to}`, { userID: id })}
      topics={installationTopics}
      body={{}}
      label={verb}
      danger={isActive}
      cli={`andromeda admin person ${to} ${email} --reason '…'`}
      close={close}
    >
      <p>
        {isActive
          ? 'They can no longer sign in. Memberships, grants, staff keys and SSH keys are removed, active sessions end, and their jobs on clusters may be cancelled. Homes and files are kept.'
          : 'They can sign in again. Memberships, grants, staff keys and SSH keys are not restored.'}
      </p>
    </WriteDialog>
  );
}
