/** What a member may do, their role, and ending a membership; each shows what it does before it is saved. */
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { bodyOf, business } from '../../api.ts';
import type { MemberChange } from '../../people.ts';
import { useWho } from '../../who.tsx';
import { Consequences, usePlan } from '../consequences.tsx';
import { AsCommand } from '../copy.tsx';
import { Dialog } from '../dialog.tsx';
import { useNow } from '../time.tsx';
import { WriteForm, type WriteHeaders } from '../write.tsx';
import {
  type Chosen,
  chosenBody,
  EndsText,
  endedOf,
  GainsText,
  isSameChoice,
  type Permission,
  PermissionChoice,
  wholeBody,
  withoutEnded,
} from './permission-choice.tsx';

/** Who is changed, as far as a form must know. */
export interface Subject {
  userId: string;
  email: string;
  role: 'owner' | 'admin' | 'member';
  granted: readonly string[];
  /** When what was granted ends by itself. */
  ends: Readonly<Record<string, string>>;
}

/** The plan of one change, and what to do once it is made: follow it, where the clusters have something to do. */
function useChange(subject: Subject, change: MemberChange | undefined, close: () => void) {
  const { orgID } = useWho();
  const navigate = useNavigate();
  const consequences = usePlan(change ? [change] : []);
  const isPossible = consequences.plan?.changes.every(({ result }) => result === 'planned') ?? false;
  const isFollowed = (consequences.plan?.clusters.length ?? 0) > 0;
  const wasFollowed = useRef(false);
  return {
    consequences,
    isPossible,
    topics: [`members/${orgID}`],
    /** As it is sent: what the plan said then counts. */
    noteSending: () => {
      wasFollowed.current = isFollowed;
    },
    onDone: () => {
      close();
      if (wasFollowed.current) void navigate({ to: '/members/change', search: { people: subject.userId } });
    },
  };
}

/** What is chosen in an open form, and of what it was chosen. */
function useChoice({ granted, ends }: Subject) {
  const now = useNow();
  // What they hold may change meanwhile; what is chosen is compared with what it was chosen from.
  const held: Chosen = Object.fromEntries(granted.map((key) => [key, ends[key] ?? null]));
  const [opened] = useState(held);
  const [wanted, setWanted] = useState(opened);
  // What ends meanwhile is neither held nor chosen any more, unless it is chosen anew.
  const ended = endedOf(opened, now);
  const before = withoutEnded(opened, now);
  const chosen = Object.fromEntries(
    Object.entries(wanted).filter(([key, end]) => !ended.includes(key) || end !== opened[key]),
  );
  const isStale = !isSameChoice(withoutEnded(held, now), before);
  return { before, chosen, setChosen: setWanted, ended, isStale };
}

export function ChangePermissions({
  subject,
  catalog,
  close,
}: {
  subject: Subject;
  catalog: readonly Permission[];
  close: () => void;
}) {
  const { orgID } = useWho();
  const { userId, email } = subject;
  const { before, chosen, setChosen, ended, isStale } = useChoice(subject);
  const gained = Object.keys(chosen).filter((key) => before[key] === undefined);
  const lost = Object.keys(before).filter((key) => chosen[key] === undefined);
  const changed = chosenBody(chosen, before).expires_at ?? {};
  const body = wholeBody(chosen);
  const isOther = gained.length + lost.length > 0 || Object.keys(changed).length > 0;
  const [end] = Object.values(changed);
  const { consequences, isPossible, topics, noteSending, onDone } = useChange(
    subject,
    isOther ? { change: 'permissions', user_id: userId, ...body } : undefined,
    close,
  );
  const send = (sent: typeof body, header: WriteHeaders) => {
    noteSending();
    return business
      .PUT('/organizations/{orgID}/members/{userID}/permissions', {
        params: { path: { orgID, userID: userId }, header },
        body: sent,
      })
      .then(bodyOf);
  };
  return (
    <Dialog title={`Permissions of ${email}`} onClose={close}>
      <WriteForm
        write={{ form: `members.permissions.${userId}`, send, topics, onDone }}
        body={isOther ? body : undefined}
        label="Save"
        isWaiting={!isPossible}
        cancel={close}
      >
        <PermissionChoice catalog={catalog} chosen={chosen} onChange={setChosen} />
        <p role="status">
          {ended.length > 0 && <>Ended while this was open: {ended.join(', ')}. </>}
          {isStale && (
            <>Their permissions have changed since this was opened; saving replaces them with these. </>
          )}
          {lost.length > 0 && <>Loses {lost.join(', ')}: sessions that depend on it end.</>}
        </p>
        <Consequences of={consequences}>
          <GainsText chosen={chosen} before={before} />
          <EndsText chosen={chosen} before={before} />
        </Consequences>
      </WriteForm>
      <AsCommand
        api="Business"
        cli={
          lost.length > 0
            ? `andromeda members revoke ${email} ${lost.join(' ')}`
            : `andromeda members grant ${email} ${Object.keys(changed).join(' ') || gained.join(' ') || 'clusters.read'}${end === undefined ? '' : ` --expires ${end ?? 'never'}`}`
        }
        operation={`PUT /organizations/${orgID}/members/${userId}/permissions`}
      />
    </Dialog>
  );
}

const roles = {
  member: 'Member: what is granted',
  admin: 'Admin: everything except managing owners',
  owner: 'Owner: everything',
} as const;

export function ChangeRole({ subject, close }: { subject: Subject; close: () => void }) {
  const { orgID, membership, me } = useWho();
  const { userId, email } = subject;
  const [role, setRole] = useState(subject.role);
  const isOther = role !== subject.role;
  const { consequences, isPossible, topics, noteSending, onDone } = useChange(
    subject,
    isOther ? { change: 'role', user_id: userId, role } : undefined,
    close,
  );
  const send = (body: { role: Subject['role'] }, header: WriteHeaders) => {
    noteSending();
    return business
      .PUT('/organizations/{orgID}/members/{userID}/role', {
        params: { path: { orgID, userID: userId }, header },
        body,
      })
      .then(bodyOf);
  };
  return (
    <Dialog title={`Role of ${email}`} onClose={close}>
      <WriteForm
        write={{ form: `members.role.${userId}`, send, topics, onDone }}
        body={isOther ? { role } : undefined}
        label="Save"
        isWaiting={!isPossible}
        cancel={close}
      >
        <label htmlFor="new-role">Role</label>
        <select
          id="new-role"
          data-first
          value={role}
          onChange={(event) => setRole(event.target.value as Subject['role'])}
        >
          {(['member', 'admin', 'owner'] as const)
            .filter((one) => one !== 'owner' || membership?.role === 'owner')
            .map((one) => (
              <option key={one} value={one}>
                {roles[one]}
              </option>
            ))}
        </select>
        {isOther && role === 'member' && <p>They will have no permissions until you grant some.</p>}
        {isOther && role !== 'member' && subject.granted.length > 0 && (
          <p>Their individual permissions are removed: the role includes them.</p>
        )}
        {isOther && userId === me.user.id && <p>This is your own role.</p>}
        <Consequences of={consequences} />
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda members role ${email} ${role}`}
        operation={`PUT /organizations/${orgID}/members/${userId}/role`}
      />
    </Dialog>
  );
}

export function RemoveMember({
  subject,
  grants,
  close,
}: {
  subject: Subject;
  /** How many live grants they hold, which stay. */
  grants: number;
  close: () => void;
}) {
  const { orgID, me } = useWho();
  const { userId, email } = subject;
  const { consequences, isPossible, topics, noteSending, onDone } = useChange(
    subject,
    { change: 'remove', user_id: userId },
    close,
  );
  const send = (_body: object, header: WriteHeaders) => {
    noteSending();
    return business
      .POST('/organizations/{orgID}/members/{userID}/remove', {
        params: { path: { orgID, userID: userId }, header },
      })
      .then(bodyOf);
  };
  return (
    <Dialog title={`Remove ${email}?`} onClose={close}>
      <WriteForm
        write={{ form: `members.remove.${userId}`, send, topics, onDone }}
        body={{}}
        label="Remove"
        usualReason="Left the organization"
        danger
        isWaiting={!isPossible}
        cancel={close}
      >
        {userId === me.user.id && <p>This is you.</p>}
        {grants > 0 && (
          <p>
            {grants === 1 ? 'One Kubernetes grant stays' : `${grants} Kubernetes grants stay`}: only an
            operator can revoke a grant.
          </p>
        )}
        <Consequences of={consequences} />
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda members remove ${email} --reason 'left the lab'`}
        operation={`POST /organizations/${orgID}/members/${userId}/remove`}
      />
    </Dialog>
  );
}
