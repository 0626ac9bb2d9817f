/** Adding members, what one may do, and ending a membership. */
import { useState } from 'react';
import { bodyOf, business } from '../api.ts';
import type { Row } from '../pages/members.tsx';
import { useWho } from '../who.tsx';
import { AsCommand } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { WriteForm, type WriteHeaders } from './write.tsx';

const mostAtOnce = 100;

export function AddMembers({ close }: { close: () => void }) {
  const { orgID } = useWho();
  const [text, setText] = useState('');
  const [role, setRole] = useState<'member' | 'admin'>('member');
  const addresses = [...new Set(text.split(/[\s,;]+/).filter((one) => /^[^@\s]+@[^@\s]+$/.test(one)))];
  const body = addresses.length > 0 && addresses.length <= mostAtOnce ? { addresses, role } : undefined;
  const send = async (wanted: { addresses: string[]; role: typeof role }, header: WriteHeaders) => {
    // One after the other, each with a key of its own: where one is refused, those before it are members.
    for (const email of wanted.addresses) {
      const own = { ...header, 'Idempotency-Key': `${header['Idempotency-Key']}/${email}` };
      const params = { path: { orgID }, header: own };
      bodyOf(
        await business.POST('/organizations/{orgID}/members', { params, body: { email, role: wanted.role } }),
      );
    }
  };
  return (
    <Dialog title="Add members" onClose={close}>
      <WriteForm
        write={{ form: `members.add.${orgID}`, send, topics: [`members/${orgID}`], onDone: close }}
        body={body}
        label={addresses.length > 1 ? `Add ${addresses.length} people` : 'Add'}
        usualReason="Joins the organization"
        cancel={close}
      >
        <label htmlFor="addresses">
          Addresses <span className="soft">(one or several)</span>
        </label>
        <textarea
          id="addresses"
          rows={4}
          value={text}
          required
          onChange={(event) => setText(event.target.value)}
        />
        <label htmlFor="role">Role</label>
        <select id="role" value={role} onChange={(event) => setRole(event.target.value as typeof role)}>
          <option value="member">Member: what you grant</option>
          <option value="admin">Admin: everything, but for owners</option>
        </select>
        <p className="soft small">
          Who has no account gets one, and signs in with that address. Nothing restarts until you grant a
          permission.
        </p>
      </WriteForm>
      <AsCommand
        api="Business"
        cli="andromeda members add cy@physics.example"
        operation={`POST /organizations/${orgID}/members`}
      />
    </Dialog>
  );
}

export function ChangePermissions({
  row: { member, granted = [] },
  catalog,
  close,
}: {
  row: Row;
  catalog: readonly { key: string; description: string }[];
  close: () => void;
}) {
  const { orgID } = useWho();
  const [wanted, setWanted] = useState<readonly string[]>(granted);
  const send = (body: { permissions: string[] }, header: WriteHeaders) =>
    business
      .PUT('/organizations/{orgID}/members/{userID}/permissions', {
        params: { path: { orgID, userID: member.user_id }, header },
        body,
      })
      .then(bodyOf);
  const toggle = (key: string) =>
    setWanted(wanted.includes(key) ? wanted.filter((one) => one !== key) : [...wanted, key]);
  const gained = wanted.filter((key) => !granted.includes(key));
  const lost = granted.filter((key) => !wanted.includes(key));
  return (
    <Dialog title={`What ${member.email} may do`} onClose={close}>
      <WriteForm
        write={{
          form: `members.permissions.${member.user_id}`,
          send,
          topics: [`members/${orgID}`],
          onDone: close,
        }}
        body={gained.length + lost.length > 0 ? { permissions: wanted.toSorted() } : undefined}
        label="Save"
        cancel={close}
      >
        <fieldset>
          <legend className="hidden">Permissions</legend>
          {catalog.map(({ key, description }) => (
            <label key={key} className="check">
              <input type="checkbox" checked={wanted.includes(key)} onChange={() => toggle(key)} />
              <span>
                <code>{key}</code> <span className="soft">{description}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <p role="status">
          {gained.length > 0 && <>Gains {gained.join(', ')}. </>}
          {lost.length > 0 && <>Loses {lost.join(', ')}: what is open by it ends.</>}
        </p>
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda members grant ${member.email} ${gained.join(' ') || 'clusters.read'}`}
        operation={`PUT /organizations/${orgID}/members/${member.user_id}/permissions`}
      />
    </Dialog>
  );
}

export function RemoveMember({ row: { member }, close }: { row: Row; close: () => void }) {
  const { orgID } = useWho();
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST('/organizations/{orgID}/members/{userID}/remove', {
        params: { path: { orgID, userID: member.user_id }, header },
      })
      .then(bodyOf);
  return (
    <Dialog title={`Remove ${member.email}?`} onClose={close}>
      <p>
        Their accounts are locked, open sessions end, and jobs on clusters may be cancelled. Homes are kept.
      </p>
      <WriteForm
        write={{
          form: `members.remove.${member.user_id}`,
          send,
          topics: [`members/${orgID}`],
          onDone: close,
        }}
        body={{}}
        label="Remove"
        usualReason="Left the organization"
        danger
        cancel={close}
      />
      <AsCommand
        api="Business"
        cli={`andromeda members remove ${member.email} --reason 'left the lab'`}
        operation={`POST /organizations/${orgID}/members/${member.user_id}/remove`}
      />
    </Dialog>
  );
}
