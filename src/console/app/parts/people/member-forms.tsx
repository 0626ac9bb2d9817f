/** Forms for a member's permissions, their role and the end of the membership; each previews its consequences. */
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useRef, useState } from 'react';
import { type Operation, operation } from '../../api.ts';
import { endedBy, type MemberChange } from '../../people.ts';
import { useWho } from '../../reads.ts';
import { Consequences, usePlan } from '../consequences.tsx';
import { Button, type Labelled, Select } from '../page.tsx';
import { useNow } from '../values.tsx';
import { useDraft, WriteDialog } from '../write.tsx';
import {
  ChoiceText,
  type Chosen,
  changesOf,
  endedOf,
  isSameChoice,
  PermissionChoice,
  wholeBody,
  withoutEnded,
} from './permission-choice.tsx';

export interface Subject {
  userId: string;
  email: string;
  role: 'owner' | 'admin' | 'member';
  granted: readonly string[];
  /** The ends of granted permissions that expire, by key. */
  ends: Readonly<Record<string, string>>;
  /** The number of their live grants, which remain when they leave. */
  grants: number;
}

export type ChangeKind = 'permissions' | 'role' | 'remove';

/** Returns a check whether the person may change members of a role: managers may, but only owners may change owners. */
export function useMayManage(): (role: Subject['role']) => boolean {
  const { isManager, membership } = useWho();
  return (role) => isManager && (role !== 'owner' || membership?.role === 'owner');
}

export function ChangeButtons({
  role,
  choose,
}: Pick<Subject, 'role'> & { choose: (kind: ChangeKind) => void }) {
  const mayManage = useMayManage();
  return (
    <div className="buttons">
      {role === 'member' && (
        <Button data-first className="second" onClick={() => choose('permissions')}>
          Permissions…
        </Button>
      )}
      {mayManage(role) && (
        <>
          <Button className="second" onClick={() => choose('role')}>
            Role…
          </Button>
          <Button className="second" onClick={() => choose('remove')}>
            Remove…
          </Button>
        </>
      )}
    </div>
  );
}

interface FormOptions {
  subject: Subject;
  close: () => void;
}

export function ChangeForm({ kind, ...form }: FormOptions & { kind: ChangeKind }) {
  if (kind === 'permissions') return <ChangePermissions {...form} />;
  return kind === 'role' ? <ChangeRole {...form} /> : <RemoveMember {...form} />;
}

interface ChangeOptions<Body> extends FormOptions {
  title: string;
  change: MemberChange | undefined;
  operation: Operation<Body>;
  body: Body;
  label?: string;
  usualReason?: string;
  danger?: boolean;
  cli: string;
  children: ReactNode;
  effects?: ReactNode;
}

/** The form of one change with its plan. Afterwards the page of its progress opens if clusters must apply it. */
function Change<Body>(options: ChangeOptions<Body>) {
  const {
    subject,
    change,
    operation: made,
    body,
    label = 'Save',
    close,
    children,
    effects,
    ...form
  } = options;
  const { orgID } = useWho();
  const navigate = useNavigate();
  const consequences = usePlan(change ? [change] : []);
  const { changes = [], clusters = [] } = consequences.plan ?? {};
  const isPossible = consequences.plan !== undefined && changes.every(({ result }) => result === 'planned');
  const wasFollowed = useRef(false);
  const send: typeof made.send = (sent, header) => {
    // The plan at the time of sending decides: it changes after the write.
    wasFollowed.current = clusters.length > 0;
    return made.send(sent, header);
  };
  const onDone = () => {
    close();
    if (wasFollowed.current) void navigate({ to: '/members/change', search: { people: subject.userId } });
  };
  return (
    <WriteDialog
      {...form}
      operation={{ ...made, send }}
      topics={[`members/${orgID}`]}
      body={change && body}
      label={label}
      isWaiting={!isPossible}
      ends={endedBy(consequences.plan)}
      onDone={onDone}
      close={close}
    >
      {children}
      <Consequences of={consequences}>{effects}</Consequences>
    </WriteDialog>
  );
}

function useChoice(form: string, { granted, ends }: Subject) {
  const now = useNow();
  // The member's permissions may change meanwhile: the choice is compared with those when the form opened.
  const held: Chosen = Object.fromEntries(granted.map((key) => [key, ends[key] ?? null]));
  const [opened] = useState(held);
  const [wanted, setWanted] = useDraft(form, 'permissions', opened);
  // Permissions that expire meanwhile are neither held nor chosen, unless the person chooses them again.
  const ended = endedOf(opened, now);
  const before = withoutEnded(opened, now);
  const chosen = Object.fromEntries(
    Object.entries(wanted).filter(([key, end]) => !ended.includes(key) || end !== opened[key]),
  );
  const isStale = !isSameChoice(withoutEnded(held, now), before);
  return { before, chosen, setChosen: setWanted, ended, isStale };
}

function ChangePermissions({ subject, close }: FormOptions) {
  const { orgID } = useWho();
  const { userId: userID, email } = subject;
  const path = '/organizations/{orgID}/members/{userID}/permissions';
  const saving = operation('put', path, { orgID, userID });
  const { before, chosen, setChosen, ended, isStale } = useChoice(saving.name, subject);
  const changes = changesOf(chosen, before);
  const lost = Object.keys(before).filter((key) => chosen[key] === undefined);
  const body = wholeBody(chosen);
  const isOther = changes.length + lost.length > 0;
  const [, end] = changes[0] ?? [];
  const granted = changes.map(([key]) => key).join(' ') || 'clusters.read';
  return (
    <Change
      subject={subject}
      title={`Permissions of ${email}`}
      change={isOther ? { change: 'permissions', user_id: userID, ...body } : undefined}
      operation={saving}
      body={body}
      cli={
        lost.length > 0
          ? `andromeda members revoke ${email} ${lost.join(' ')}`
          : `andromeda members grant ${email} ${granted}${end === undefined ? '' : ` --expires ${end ?? 'never'}`}`
      }
      close={close}
      effects={<ChoiceText chosen={chosen} before={before} />}
    >
      <PermissionChoice value={chosen} onChange={setChosen} />
      <p role="status">
        {ended.length > 0 && <>Ended while this was open: {ended.join(', ')}. </>}
        {isStale && (
          <>Their permissions have changed since this was opened; saving replaces them with these. </>
        )}
        {lost.length > 0 && <>Loses {lost.join(', ')}: sessions that depend on it end.</>}
      </p>
    </Change>
  );
}

const roles = [
  ['member', 'Member: what is granted'],
  ['admin', 'Admin: everything except managing owners'],
  ['owner', 'Owner: everything'],
] as const;

export function RoleSelect(field: Omit<Labelled<Subject['role']>, 'label'>) {
  const { membership } = useWho();
  const mayGiveAll = membership?.role === 'owner';
  return <Select {...field} label="Role" options={mayGiveAll ? roles : roles.slice(0, 2)} />;
}

function ChangeRole({ subject, close }: FormOptions) {
  const { orgID, me } = useWho();
  const { userId: userID, email } = subject;
  const saving = operation('put', '/organizations/{orgID}/members/{userID}/role', { orgID, userID });
  const [role, setRole] = useDraft(saving.name, 'role', subject.role);
  const isOther = role !== subject.role;
  return (
    <Change
      subject={subject}
      title={`Role of ${email}`}
      change={isOther ? { change: 'role', user_id: userID, role } : undefined}
      operation={saving}
      body={{ role }}
      cli={`andromeda members role ${email} ${role}`}
      close={close}
    >
      <RoleSelect id="new-role" value={role} onChange={setRole} />
      {isOther && role === 'member' && <p>They will have no permissions until you grant some.</p>}
      {isOther && role !== 'member' && subject.granted.length > 0 && (
        <p>Their individual permissions are removed: the role includes them.</p>
      )}
      {isOther && userID === me.user.id && <p>This is your own role.</p>}
    </Change>
  );
}

function RemoveMember({ subject, close }: FormOptions) {
  const { orgID, me } = useWho();
  const { userId: userID, email, grants } = subject;
  return (
    <Change
      subject={subject}
      title={`Remove ${email}?`}
      change={{ change: 'remove', user_id: userID }}
      operation={operation('post', '/organizations/{orgID}/members/{userID}/remove', { orgID, userID })}
      body={{}}
      label="Remove"
      usualReason="Left the organization"
      danger
      cli={`andromeda members remove ${email} --reason 'left the lab'`}
      close={close}
    >
      {userID === me.user.id && <p>This is you.</p>}
      {grants > 0 && (
        <p>
          {grants === 1 ? 'One Kubernetes grant stays' : `${grants} Kubernetes grants stay`}: only an operator
          can revoke a grant.
        </p>
      )}
    </Change>
  );
}
