/** Adds members by pasted email addresses. Each address is a separate write with its own outcome. */
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { readEmails } from '../../../../domain/people/person.ts';
import { ApiError, bodyOf, business, type WriteHeaders } from '../../api.ts';
import { endedBy } from '../../people.ts';
import { useWho } from '../../reads.ts';
import { Consequences, usePlan } from '../consequences.tsx';
import type { Edited } from '../page.tsx';
import { count } from '../values.tsx';
import { isRefusal, useDraft, WriteDialog } from '../write.tsx';
import { RoleSelect, type Subject } from './member-forms.tsx';
import { ChoiceText, type Chosen, PermissionChoice, wholeBody } from './permission-choice.tsx';

const mostAtOnce = 100;
const longestText = 20_000;

interface NewMembers {
  addresses: string[];
  role: Subject['role'];
  permissions: string[];
  expires_at?: Record<string, string | null>;
}

interface Outcome {
  email: string;
  userId?: string;
  problem?: string;
}

export function AddMembers({ close }: { close: () => void }) {
  const { orgID } = useWho();
  const navigate = useNavigate();
  const form = `POST /organizations/${orgID}/members`;
  const [text, setText] = useDraft(form, 'addresses', '');
  const [role, setRole] = useDraft<Subject['role']>(form, 'role', 'member');
  const [chosen, setChosen] = useDraft<Chosen>(form, 'permissions', {});
  const [done, setDone] = useState<readonly Outcome[]>([]);
  const { found, unread } = readEmails(text.slice(0, longestText));
  const granted = wholeBody(role === 'member' ? chosen : {});
  const consequences = usePlan(
    found.length > mostAtOnce ? [] : found.map((email) => ({ change: 'add', email, role, ...granted })),
  );
  const planned = consequences.plan?.changes.filter(({ result }) => result === 'planned') ?? [];
  const possible = new Set(planned.map(({ email }) => email));
  const addresses = found.filter((email) => possible.has(email.toLowerCase()));
  const finish = (outcomes: readonly Outcome[]) => {
    const all = [...done.filter(({ userId }) => userId !== undefined), ...outcomes];
    const missing = all.filter(({ problem }) => problem !== undefined);
    setDone(all);
    setText(missing.map(({ email }) => email).join('\n'));
    if (missing.length > 0) return;
    close();
    void navigate({ to: '/members/change', search: { people: idsOf(all) } });
  };
  const send = (wanted: NewMembers, header: WriteHeaders) => addAll(orgID, wanted, header);
  return (
    <WriteDialog
      title="Add members"
      operation={{ name: form, send }}
      topics={[`members/${orgID}`]}
      onDone={finish}
      doneText={addedText}
      body={addresses.length > 0 ? { addresses, role, ...granted } : undefined}
      label={addresses.length > 1 ? `Add ${addresses.length} people` : 'Add'}
      usualReason="Joins the organization"
      isWaiting={addresses.length === 0}
      ends={endedBy(consequences.plan)}
      cli={`andromeda members add ${found[0] ?? 'cy@physics.example'}`}
      close={close}
    >
      <Outcomes of={done} />
      <AddressField value={text} onChange={setText} status={statusOf(found.length, unread)} />
      <RoleSelect id="role" value={role} onChange={setRole} />
      {role === 'member' && <PermissionChoice value={chosen} onChange={setChosen} />}
      <Consequences of={consequences}>{role === 'member' && <ChoiceText chosen={chosen} />}</Consequences>
    </WriteDialog>
  );
}

function AddressField({ value, onChange, status }: Edited<string> & { status: string }) {
  return (
    <>
      <label htmlFor="addresses">
        Addresses <span className="soft">(one or more, in any format)</span>
      </label>
      <textarea
        id="addresses"
        data-first
        rows={4}
        value={value}
        required
        maxLength={longestText}
        aria-describedby="addresses-read"
        onChange={(event) => onChange(event.target.value)}
      />
      <p id="addresses-read" className="soft small" role="status">
        {status}
      </p>
    </>
  );
}

/**
 * Adds members one by one, each under its own idempotency key, derived so that a retry uses the same. A refusal is noted and
 * the rest continues. Throws if an answer is missing; the retry sends all of them again.
 */
async function addAll(orgID: string, wanted: NewMembers, header: WriteHeaders): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [index, email] of wanted.addresses.entries()) {
    const own = { ...header, 'Idempotency-Key': `${header['Idempotency-Key']}/${index}` };
    const { addresses: _addresses, permissions, ...rest } = wanted;
    const body = { email, ...rest, ...(permissions.length > 0 && { permissions }) };
    try {
      const params = { path: { orgID }, header: own };
      const member = bodyOf(await business.POST('/organizations/{orgID}/members', { params, body }));
      outcomes.push({ email, userId: member.user_id });
    } catch (error) {
      if (!(error instanceof ApiError) || !isRefusal(error)) throw error;
      outcomes.push({ email, problem: error.message });
    }
  }
  return outcomes;
}

function addedText(outcomes: readonly Outcome[]): string {
  const added = outcomes.filter(({ userId }) => userId !== undefined).length;
  return `${added} of ${count(outcomes.length, 'person', 'people')} added.`;
}

function idsOf(outcomes: readonly Outcome[]): string {
  return outcomes.flatMap(({ userId }) => userId ?? []).join(',');
}

function statusOf(found: number, unread: readonly string[]): string {
  if (found === 0 && unread.length === 0) return 'With commas, lines or names between them.';
  const many = found > mostAtOnce ? ` At most ${mostAtOnce} at once.` : '';
  const rest = unread.length > 0 ? ` Not email addresses: ${unread.slice(0, 8).join(' ')}` : '';
  return `${count(found, 'address', 'addresses')}.${many}${rest}`;
}

function Outcomes({ of: outcomes }: { of: readonly Outcome[] }) {
  if (outcomes.length === 0) return null;
  const added = outcomes.filter(({ userId }) => userId !== undefined);
  const missing = outcomes.filter(({ problem }) => problem !== undefined);
  return (
    <div className="problem" role="alert">
      <p>
        {added.length} of {outcomes.length} are members now. The others are listed below; try again.
      </p>
      <ul>
        {missing.map(({ email, problem }) => (
          <li key={email}>
            {email}: {problem}
          </li>
        ))}
      </ul>
      {added.length > 0 && (
        <p>
          Added: {added.map(({ email }) => email).join(', ')}.{' '}
          <Link to="/members/change" search={{ people: idsOf(added) }}>
            Show progress
          </Link>
        </p>
      )}
    </div>
  );
}
