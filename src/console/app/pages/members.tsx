/** Members and their access: its ways and ends, and the forms to add, change and remove members. */
import { useState } from 'react';
import {
  type PermissionKey,
  permissionCatalog,
  permissionLabels,
  wayTo,
} from '../../../domain/access/permission.ts';
import { grantText } from '../../../domain/access/review.ts';
import { type Operation, operation } from '../api.ts';
import { Button, Dialog, type Edited, isWhole, Loaded, Page, Panel, Problem, said } from '../parts/page.tsx';
import { Until } from '../parts/people/access-state.tsx';
import { AddMembers } from '../parts/people/add-members.tsx';
import { ChangeButtons, ChangeForm, type ChangeKind, useMayManage } from '../parts/people/member-forms.tsx';
import { SaveCsv } from '../parts/save.tsx';
import { actions, type Column, PersonCell, RemoteTable, Table } from '../parts/table.tsx';
import { Age, count, Moment, Shape } from '../parts/values.tsx';
import { useWrite } from '../parts/write.tsx';
import { type Reviewed, type Team, useDue, useReview, useTeams } from '../people.ts';
import { useWho } from '../reads.ts';

type Action = { kind: 'add' } | { kind: 'choose' | ChangeKind; row: Reviewed } | undefined;

export default function MembersPage() {
  const { orgID, isManager } = useWho();
  const [doing, setDoing] = useState<Action>();
  const [day, setDay] = useState('');
  const isPast = day !== '';
  const shown = isPast ? heldColumns : [...allColumns, actionColumn(setDoing)];
  const { review, remote, csv } = useReview(allColumns, isPast ? { at: `${day}T00:00:00Z` } : {});
  return (
    <Page
      title="Members"
      isWide
      sentence={said(review, ({ counts }) => <Sentence counts={counts} day={day} />)}
      actions={isManager && <Button onClick={() => setDoing({ kind: 'add' })}>Add members</Button>}
    >
      <KeepAccess change={(row) => setDoing({ kind: 'choose', row })} />
      <Panel
        title="Who has access to what"
        tools={
          <>
            {isManager && <DayField value={day} onChange={setDay} />}
            <SaveCsv name={`members${day}.csv`} of={review} text={csv} />
          </>
        }
        cli={isPast ? `andromeda members access --at ${day}` : 'andromeda members list --permissions'}
        operation={`GET /organizations/${orgID}/access-review`}
      >
        <Loaded of={review}>
          {({ people, counts, shows_access: showsAccess }) => (
            <>
              <RemoteTable
                name="members"
                rows={people}
                id={({ user_id: id }) => id}
                columns={showsAccess ? shown : memberColumns}
                remote={remote}
                all={counts.people}
              />
              {showsAccess && <Legend />}
            </>
          )}
        </Loaded>
      </Panel>
      <Teams />
      <Form doing={doing} act={setDoing} close={() => setDoing(undefined)} />
    </Page>
  );
}

/** A day in UTC, which stands for its beginning; empty means now. */
function DayField({ value, onChange }: Edited<string>) {
  const max = new Date().toISOString().slice(0, 10);
  return (
    <label className="small">
      As it was on{' '}
      <input type="date" {...{ value, max }} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}

function Form({ doing, act, close }: { doing: Action; act: (doing: Action) => void; close: () => void }) {
  if (!doing) return null;
  if (doing.kind === 'add') return <AddMembers close={close} />;
  const { kind, row } = doing;
  const { user_id: userId, email, role = 'member', permissions: granted = [] } = row;
  if (kind === 'choose')
    return (
      <Dialog title={`Change ${email}`} onClose={close}>
        <ChangeButtons role={role} choose={(chosen) => act({ kind: chosen, row })} />
      </Dialog>
    );
  const subject = {
    userId,
    email,
    role,
    granted,
    ends: row.expires_at ?? {},
    grants: row.grants?.length ?? 0,
  };
  return <ChangeForm kind={kind} subject={subject} close={close} />;
}

interface Counts {
  people: number;
  members: number;
  managers: number;
  ssh?: number;
}

function Sentence({ counts: { people, members, managers, ssh }, day }: { counts: Counts; day: string }) {
  const guests = people - members;
  return (
    <>
      {day && `At the beginning of ${day} (UTC): `}
      {count(members, 'member')}, {managers} of them owner or admin.
      {ssh !== undefined && ` ${ssh} may log in over SSH.`}
      {guests > 0 && ` ${count(guests, 'more holds', 'more hold')} a Kubernetes grant.`}
    </>
  );
}

const marks = { role: 'busy', granted: 'good', included: 'busy' } as const;
const ways = { role: 'by role', granted: 'granted', included: 'included in another' } as const;

function Legend() {
  return (
    <p className="soft small">
      <Shape kind="good" /> granted, <Shape kind="busy" /> included in another permission, or by role: owners
      and admins have everything.
    </p>
  );
}

const memberColumns: Column<Reviewed>[] = [
  { name: 'Person', sort: 'name', cell: (row) => <PersonCell of={row} /> },
  { name: 'User name', sort: 'username', cell: ({ username = '–' }) => username },
  { name: 'Role', sort: 'role', cell: ({ role }) => role ?? <span className="soft">not a member</span> },
  {
    name: 'Since',
    sort: 'member_since',
    cell: ({ member_since: at }) => (at === undefined ? <Nothing /> : <Age at={at} past="" />),
  },
];

const heldColumns: Column<Reviewed>[] = [
  ...memberColumns,
  ...permissionCatalog.map(({ key, description }) => ({
    name: permissionLabels[key],
    title: `${key}: ${description}`,
    sort: key,
    cell: (row: Reviewed) => <Held permission={key} of={row} />,
  })),
  { name: 'Grants', sort: 'grants', title: 'Kubernetes grants', cell: (row) => <Grants of={row} /> },
];

const lastSignIn = lastOf('Last sign-in', ({ last_sign_in_at: at }) => at);
const allColumns: Column<Reviewed>[] = [...heldColumns, { ...lastSignIn, sort: 'last_sign_in' }];

function actionColumn(act: (doing: Action) => void): Column<Reviewed> {
  return {
    name: actions,
    cell: (row) => row.role && <Act row={row} role={row.role} act={act} />,
  };
}

interface ActOptions {
  row: Reviewed;
  role: NonNullable<Reviewed['role']>;
  act: (doing: Action) => void;
}

function Act({ row, role, act }: ActOptions) {
  const mayManage = useMayManage();
  return (
    <Button
      className="second small"
      aria-label={`Change ${row.email}`}
      disabled={role !== 'member' && !mayManage(role)}
      onClick={() => act({ kind: 'choose', row })}
    >
      Change…
    </Button>
  );
}

function Nothing() {
  return <span className="soft absent">–</span>;
}

function Held({ permission, of }: { permission: PermissionKey; of: Reviewed }) {
  const way = wayTo(permission, of);
  if (way === undefined) return <Nothing />;
  const end = of.expires_at?.[permission];
  return (
    <span className={marks[way]} title={`${permission}, ${ways[way]}`}>
      <Shape kind={marks[way]} />
      <span className="hidden">{ways[way]}</span>
      {end !== undefined && (
        <span className="small">
          {' '}
          <Until at={end} />
        </span>
      )}
    </span>
  );
}

function Grants({ of: { grants = [] } }: { of: Reviewed }) {
  if (grants.length === 0) return <Nothing />;
  return (
    <div>
      {grants.map((grant) => (
        <div key={grant.id}>
          {grantText({ ...grant, clusterName: grant.cluster_name, scope: grant.scope ?? null })}{' '}
          <span className="small">
            <Until at={grant.expires_at} />
          </span>
        </div>
      ))}
    </div>
  );
}

const columns: Column<Reviewed>[] = [
  { name: 'Person', cell: (row) => <PersonCell of={row} /> },
  { name: 'Permissions', cell: ({ permissions = [] }) => permissions.join(', ') },
  lastSignIn,
  lastOf('Last SSH login', ({ last_ssh_login_at: at }) => at),
  { name: 'Ends', cell: ({ keep_by: at }) => at && <Moment at={at} /> },
];

function lastOf(name: string, at: (row: Reviewed) => string | undefined): Column<Reviewed> {
  const cell = (row: Reviewed) => {
    const time = at(row);
    return time === undefined ? <span className="soft">never</span> : <Age at={time} />;
  };
  return { name, cell };
}

/** Empty while no member's access is due. `change` opens the page's dialog that changes or removes a member. */
function KeepAccess({ change }: { change: (row: Reviewed) => void }) {
  const due = useDue();
  if (!due.error && !due.data?.total) return null;
  const label = isWhole(due) ? `Access of ${count(due.data?.total ?? 0, 'member')}` : 'Access';
  return <Loaded of={due}>{({ people }) => <Due people={people} label={label} change={change} />}</Loaded>;
}

/** Empty while the organization has no teams. */
function Teams() {
  const { orgID } = useWho();
  const teams = useTeams();
  if (!teams.error && !teams.data?.length) return null;
  return (
    <Panel title="Teams" cli="andromeda teams list" operation={`GET /organizations/${orgID}/teams`}>
      <p className="soft">Groups on the Slurm clusters. Owners make them with “andromeda teams set”.</p>
      <Loaded of={teams}>
        {(rows) => <Table name="teams" rows={rows} id={({ name }) => name} columns={teamColumns} />}
      </Loaded>
    </Panel>
  );
}

const teamColumns: Column<Team>[] = [
  { name: 'Team', cell: ({ name }) => name },
  { name: 'Number', cell: ({ gid }) => gid },
  {
    name: 'Members',
    cell: ({ everyone, members }) =>
      everyone ? <span className="soft">everyone</span> : members.map(({ email }) => email).join(', '),
  },
];

/** Keeps members' permissions without the end that the review set: one write and one idempotency key for each. */
function keeping(orgID: string): Operation<readonly Reviewed[], unknown> {
  return {
    name: `keep access in ${orgID}`,
    async send(people, header) {
      for (const { user_id: userID, permissions = [], expires_at: ends = {}, keep_by: end } of people) {
        const kept = Object.entries(ends).map(([key, at]) => [key, at === end ? null : at]);
        const key = `${header['Idempotency-Key']} ${userID}`;
        await operation('put', '/organizations/{orgID}/members/{userID}/permissions', { orgID, userID }).send(
          { permissions: [...permissions], expires_at: Object.fromEntries(kept) },
          { ...header, 'Idempotency-Key': key },
        );
      }
    },
  };
}

interface DueOptions {
  people: readonly Reviewed[];
  label: string;
  change: (row: Reviewed) => void;
}

function Due({ people, label, change }: DueOptions) {
  const { orgID } = useWho();
  const { mutate, isPending, error } = useWrite({
    operation: keeping(orgID),
    topics: [`members/${orgID}`],
    doneText: 'The access is kept.',
  });
  const keep = (body: readonly Reviewed[]) => mutate({ body, reason: 'Access reviewed' });
  const action: Column<Reviewed> = {
    name: actions,
    cell: (row) => (
      <>
        <Button
          className="second small"
          aria-label={`Keep the access of ${row.email}`}
          disabled={isPending}
          onClick={() => keep([row])}
        >
          Keep
        </Button>{' '}
        <Button
          className="second small"
          aria-label={`Change ${row.email} under review`}
          onClick={() => change(row)}
        >
          Change…
        </Button>
      </>
    ),
  };
  return (
    <Panel
      title={`${label} ends unless you keep it`}
      cli="andromeda members review"
      operation={`GET /organizations/${orgID}/access-review?due=true`}
    >
      <p>It was given without an end, and nobody has changed it for so long that it is reviewed.</p>
      <Table name="to keep" rows={people} id={({ user_id: id }) => id} columns={[...columns, action]} />
      {error && <Problem error={error} />}
      <Button disabled={isPending} onClick={() => keep(people)}>
        Keep all
      </Button>
    </Panel>
  );
}
