/** Forms to create an account, set staff keys, and deactivate or restore an account. */
import { operation } from '../../api.ts';
import { endedBy, readDeactivation, useReadPlan } from '../../people.ts';
import { installationTopics, type Person } from '../../reads.ts';
import { Consequences } from '../consequences.tsx';
import { CheckList, Field } from '../page.tsx';
import { useDraft, WriteDialog } from '../write.tsx';

type StaffKey = 'staff.read' | 'staff.audit' | 'staff.operate';

const staffKeys: readonly { key: StaffKey; hint: string }[] = [
  { key: 'staff.read', hint: 'See everything in the installation' },
  { key: 'staff.audit', hint: 'Read and verify the audit trail' },
  { key: 'staff.operate', hint: 'Change everything; includes both others' },
];

export function AddPerson({ close }: { close: () => void }) {
  const adding = operation('post', '/operator/people', {});
  const [email, setEmail] = useDraft(adding.name, 'email', '');
  const [name, setName] = useDraft(adding.name, 'name', '');
  const body = { email: email.trim(), ...(name.trim() && { name: name.trim() }) };
  return (
    <WriteDialog
      title="Add person"
      operation={adding}
      topics={installationTopics}
      body={email.trim() === '' ? undefined : body}
      label="Add"
      cli={`andromeda admin person add ${email || 'cy@physics.example'}`}
      close={close}
    >
      <Field id="person-email" label="Email" type="email" required value={email} onChange={setEmail} />
      <Field
        id="person-name"
        label="Name"
        hint="left empty: the email address"
        value={name}
        onChange={setName}
      />
      <p className="soft small">
        The account belongs to the person who signs in with this verified email address. It has no
        organization and no permissions yet.
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
  const saving = operation('put', '/operator/people/{userID}/staff-keys', { userID: id });
  const [wanted, setWanted] = useDraft<readonly StaffKey[]>(saving.name, 'keys', held);
  const gained = wanted.filter((key) => !held.includes(key));
  const lost = held.filter((key) => !wanted.includes(key));
  return (
    <WriteDialog
      title={`Staff keys of ${email}`}
      operation={saving}
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

export function Lifecycle(options: PersonOptions) {
  return options.person.lifecycle_state === 'active' ? (
    <Deactivate {...options} />
  ) : (
    <Reactivate {...options} />
  );
}

function Deactivate({ person: { id, primary_email: email }, close }: PersonOptions) {
  const consequences = useReadPlan(readDeactivation(id));
  const isRefused = consequences.plan?.changes.some(({ result }) => result === 'refused') ?? false;
  return (
    <WriteDialog
      title={`Deactivate ${email}?`}
      operation={operation('post', '/operator/people/{userID}/deactivate', { userID: id })}
      topics={installationTopics}
      body={{}}
      label="Deactivate"
      danger
      isWaiting={isRefused || consequences.isWaiting}
      ends={endedBy(consequences.plan)}
      cli={`andromeda admin person deactivate ${email} --reason '…'`}
      close={close}
    >
      <p>
        They can no longer sign in. Memberships, grants, staff keys and SSH keys are removed, active sessions
        end, and their jobs on clusters may be cancelled. Homes and files are kept.
      </p>
      <Consequences of={consequences} />
    </WriteDialog>
  );
}

function Reactivate({ person: { id, primary_email: email }, close }: PersonOptions) {
  return (
    <WriteDialog
      title={`Reactivate ${email}?`}
      operation={operation('post', '/operator/people/{userID}/reactivate', { userID: id })}
      topics={installationTopics}
      body={{}}
      label="Reactivate"
      cli={`andromeda admin person reactivate ${email} --reason '…'`}
      close={close}
    >
      <p>They can sign in again. Memberships, grants, staff keys and SSH keys are not restored.</p>
    </WriteDialog>
  );
}
