/** Making an account, staff keys, and ending and restoring an account. */
import { useState } from 'react';
import { bodyOf, business } from '../../api.ts';
import { installationTopics, type Person } from '../../installation.ts';
import { AsCommand } from '../copy.tsx';
import { Dialog } from '../dialog.tsx';
import { WriteForm, type WriteHeaders } from '../write.tsx';

type StaffKey = 'staff.read' | 'staff.audit' | 'staff.operate';

const staffKeys: readonly { key: StaffKey; meaning: string }[] = [
  { key: 'staff.read', meaning: 'See everything in the installation' },
  { key: 'staff.audit', meaning: 'Read and verify the audit trail' },
  { key: 'staff.operate', meaning: 'Change everything; includes both others' },
];

export function AddPerson({ close }: { close: () => void }) {
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const body =
    email.trim() === '' ? undefined : { email: email.trim(), ...(name.trim() && { name: name.trim() }) };
  const send = (wanted: NonNullable<typeof body>, header: WriteHeaders) =>
    business.POST('/operator/people', { params: { header }, body: wanted }).then(bodyOf);
  return (
    <Dialog title="Add person" onClose={close}>
      <WriteForm
        write={{ form: 'person.add', send, topics: installationTopics, onDone: close }}
        body={body}
        label="Add"
        cancel={close}
      >
        <label htmlFor="person-email">Address</label>
        <input
          id="person-email"
          type="email"
          required
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
        <label htmlFor="person-name">
          Name <span className="soft">(left empty: the address)</span>
        </label>
        <input id="person-name" value={name} onChange={(event) => setName(event.target.value)} />
        <p className="soft small">
          The account belongs to the person who signs in with this verified address. It has no organization
          and no permissions yet.
        </p>
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda admin person add ${email || 'cy@physics.example'}`}
        operation="POST /operator/people"
      />
    </Dialog>
  );
}

export function StaffKeys({ person, close }: { person: Person; close: () => void }) {
  const held = person.staff_keys as StaffKey[];
  const [wanted, setWanted] = useState<readonly StaffKey[]>(held);
  const toggle = (key: StaffKey) =>
    setWanted(wanted.includes(key) ? wanted.filter((one) => one !== key) : [...wanted, key]);
  const gained = wanted.filter((key) => !held.includes(key));
  const lost = held.filter((key) => !wanted.includes(key));
  const send = (body: { staff_keys: StaffKey[] }, header: WriteHeaders) =>
    business
      .PUT('/operator/people/{userID}/staff-keys', {
        params: { path: { userID: person.id }, header },
        body,
      })
      .then(bodyOf);
  return (
    <Dialog title={`Staff keys of ${person.primary_email}`} onClose={close}>
      <WriteForm
        write={{
          form: `person.staff.${person.id}`,
          send,
          topics: [...installationTopics, 'me'],
          onDone: close,
        }}
        body={gained.length + lost.length > 0 ? { staff_keys: wanted.toSorted() } : undefined}
        label="Save"
        danger={gained.includes('staff.operate')}
        cancel={close}
      >
        <fieldset>
          <legend className="hidden">Staff keys</legend>
          {staffKeys.map(({ key, meaning }) => (
            <label key={key} className="check">
              <input type="checkbox" checked={wanted.includes(key)} onChange={() => toggle(key)} />
              <span>
                <code>{key}</code> <span className="soft">{meaning}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <p role="status">
          {gained.length > 0 && <>Gains {gained.join(', ')}, at once. </>}
          {lost.length > 0 && <>Loses {lost.join(', ')}, at once. </>}
          {gained.includes('staff.operate') && <>They can then do everything that you can.</>}
          {gained.length + lost.length === 0 && <>No changes yet.</>}
        </p>
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda admin person staff ${person.primary_email} ${wanted.join(' ') || '--none'}`}
        operation={`PUT /operator/people/${person.id}/staff-keys`}
      />
    </Dialog>
  );
}

export function Lifecycle({ person, close }: { person: Person; close: () => void }) {
  const isActive = person.lifecycle_state === 'active';
  const verb = isActive ? 'Deactivate' : 'Reactivate';
  const to = isActive ? 'deactivate' : 'reactivate';
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST(`/operator/people/{userID}/${to}`, { params: { path: { userID: person.id }, header } })
      .then(bodyOf);
  return (
    <Dialog title={`${verb} ${person.primary_email}?`} onClose={close}>
      <p>
        {isActive
          ? 'They can no longer sign in. Memberships, grants, staff keys and SSH keys are removed, active sessions end, and their jobs on clusters may be cancelled. Homes and files are kept.'
          : 'They can sign in again. Memberships, grants, staff keys and SSH keys are not restored.'}
      </p>
      <WriteForm
        write={{ form: `person.${to}.${person.id}`, send, topics: installationTopics, onDone: close }}
        body={{}}
        label={verb}
        danger={isActive}
        cancel={close}
      />
      <AsCommand
        api="Business"
        cli={`andromeda admin person ${to} ${person.primary_email} --reason '…'`}
        operation={`POST /operator/people/${person.id}/${to}`}
      />
    </Dialog>
  );
}
