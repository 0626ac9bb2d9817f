/** Who has access to what, by which way and until when; who joins and leaves. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { count } from '../count.ts';
import { PersonLink, Until } from '../parts/access-state.tsx';
import { Button } from '../parts/controls.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Loaded, Loading, Page, Panel } from '../parts/page.tsx';
import { AddMembers } from '../parts/people/add-members.tsx';
import { ChangeButtons, ChangeForm, type ChangeKind, useMayManage } from '../parts/people/member-forms.tsx';
import { SaveCsv } from '../parts/save.tsx';
import { Shape } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { type Grant, readGrants } from '../people.ts';
import { readCatalog, readMemberPermissions, readMembers } from '../reads.ts';
import { useWho } from '../who.tsx';

type Member = components['schemas']['Membership'];

/** What the table needs to know of a permission. */
interface Permission {
  key: string;
  implies: readonly string[];
}

interface Row {
  member: Member;
  /** What was granted; undefined where the reader may not know. */
  granted: readonly string[] | undefined;
  /** Of the permissions that end by themselves, when. */
  ends: Readonly<Record<string, string>>;
  /** Live Kubernetes grants, the first to end first. */
  grants: readonly Grant[];
}

type Way = 'role' | 'granted' | 'included' | undefined;
type Doing = { kind: 'add' } | { kind: 'choose' | ChangeKind; row: Row } | undefined;

/** How a member comes to a permission. */
function wayTo(key: string, { member, granted = [] }: Row, catalog: readonly Permission[]): Way {
  if (member.role !== 'member') return 'role';
  if (granted.includes(key)) return 'granted';
  return catalog.some((one) => granted.includes(one.key) && one.implies.includes(key))
    ? 'included'
    : undefined;
}

const ways = { role: 'by role', granted: 'granted', included: 'included in another' } as const;

export default function MembersPage() {
  const { orgID, isManager } = useWho();
  const [doing, setDoing] = useState<Doing>();
  const { members, rows, others, catalog, isWhole, mayChange } = useRows();
  return (
    <Page
      title="Members"
      isWide
      sentence={members.data && <Sentence rows={rows} others={others} />}
      actions={isManager && <Button onClick={() => setDoing({ kind: 'add' })}>Add members</Button>}
    >
      <Panel
        title="Who has access to what"
        tools={<SaveCsv name="members.csv" rows={() => rowsOfFile(rows, catalog)} />}
        cli="andromeda members list --permissions"
        operation={`GET /organizations/${orgID}/permissions`}
      >
        <Loaded of={members}>
          {() => {
            if (!isWhole) return <Loading />;
            return <MemberTable rows={rows} catalog={catalog} act={mayChange ? setDoing : undefined} />;
          }}
        </Loaded>
        <p className="soft small">
          <Shape kind="good" /> granted, <Shape kind="busy" /> included in another permission,{' '}
          <Shape kind="warn" /> by role: owners and admins have everything.
        </p>
      </Panel>
      {members.data && others.length > 0 && <Others grants={others} />}
      <Form doing={doing} act={setDoing} close={() => setDoing(undefined)} />
    </Page>
  );
}

/** The members, and the grants of people who are not members. */
function useRows() {
  const who = useWho();
  const members = useQuery(readMembers(who.orgID));
  const permissions = useQuery(readMemberPermissions(who));
  const grants = useQuery(readGrants(who));
  const catalog = useQuery(readCatalog());
  const granted = new Map(permissions.data?.members.map((one) => [one.user_id, one]));
  const grantsOf = Map.groupBy(grants.data ?? [], ({ grant }) => grant.user_id);
  const rows = (members.data?.members ?? []).map((member) => ({
    member,
    granted: permissions.data ? (granted.get(member.user_id)?.permissions ?? []) : undefined,
    ends: granted.get(member.user_id)?.expires_at ?? {},
    grants: (grantsOf.get(member.user_id) ?? []).toSorted(byEnd),
  }));
  const known = new Set(rows.map(({ member }) => member.user_id));
  return {
    members,
    rows,
    others: (grants.data ?? []).filter(({ grant }) => !known.has(grant.user_id)),
    catalog: catalog.data ?? [],
    // Drawn once: thousands of people cost the more the more often.
    isWhole: [permissions, grants, catalog].every(({ isPending }) => !isPending),
    mayChange: Boolean(permissions.data),
  };
}

function byEnd({ grant: a }: Grant, { grant: b }: Grant): number {
  return (a.expires_at ?? '~') < (b.expires_at ?? '~') ? -1 : 1;
}

function Form({ doing, act, close }: { doing: Doing; act: (doing: Doing) => void; close: () => void }) {
  if (!doing) return null;
  if (doing.kind === 'add') return <AddMembers close={close} />;
  const { kind, row } = doing;
  const { user_id: userId, email, role } = row.member;
  if (kind === 'choose')
    return (
      <Dialog title={`Change ${email}`} onClose={close}>
        <ChangeButtons role={role} choose={(chosen) => act({ kind: chosen, row })} />
      </Dialog>
    );
  const granted = role === 'member' ? (row.granted ?? []) : [];
  const subject = { userId, email, role, granted, ends: row.ends, grants: row.grants.length };
  return <ChangeForm kind={kind} subject={subject} close={close} />;
}

function Sentence({ rows, others }: { rows: readonly Row[]; others: readonly Grant[] }) {
  const managers = rows.filter(({ member }) => member.role !== 'member').length;
  const ssh = rows.filter(
    ({ member, granted }) => member.role !== 'member' || granted?.some((key) => /ssh|configure/.test(key)),
  ).length;
  const isKnown = rows.some(({ granted }) => granted !== undefined);
  const guests = new Set(others.map(({ grant }) => grant.user_id)).size;
  return (
    <>
      {count(rows.length, 'member')}, {managers} of them owner or admin.
      {isKnown && ` ${ssh} may log in over SSH.`}
      {guests > 0 && ` ${count(guests, 'more holds', 'more hold')} a Kubernetes grant.`}
    </>
  );
}

/** What a grant opens, such as `beta/ml: developer`. */
function grantText({ grant, cluster_name: cluster }: Grant): string {
  const where = grant.scope === undefined ? cluster : `${cluster}/${grant.scope}`;
  return `${where}: ${grant.relation.replace('kubernetes.', '')}`;
}

interface TableOptions {
  rows: readonly Row[];
  catalog: readonly Permission[];
  act: ((doing: Doing) => void) | undefined;
}

function MemberTable({ rows, catalog, act }: TableOptions) {
  const isKnown = rows.some(({ granted }) => granted !== undefined);
  const hasGrants = rows.some(({ grants }) => grants.length > 0);
  const hasEnds = hasGrants || rows.some(({ ends }) => Object.keys(ends).length > 0);
  const columns: (Column<Row> | false | undefined)[] = [
    { name: 'Address', cell: ({ member }) => <PersonLink id={member.user_id} email={member.email} /> },
    { name: 'User name', cell: ({ member }) => member.organization_username.username },
    { name: 'Role', cell: ({ member }) => member.role },
    ...(isKnown ? catalog : []).map(({ key }) => ({
      name: key,
      cell: (row: Row) => <Mark way={wayTo(key, row, catalog)} />,
    })),
    { name: 'Since', cell: ({ member }) => <Age at={member.created_at} past="" /> },
    hasGrants && { name: 'Grants', cell: ({ grants }) => <Lines of={grants.map(grantText)} /> },
    hasEnds && { name: 'Until', cell: (row) => <Ends of={row} /> },
    act && { name: 'Actions', cell: (row) => <Act row={row} act={act} /> },
  ];
  return (
    <Table
      name="members"
      rows={rows}
      id={({ member }) => member.user_id}
      text={({ member, granted = [], grants }) =>
        `${member.email} ${member.organization_username.username} ${member.role} ${granted.join(' ')} ${grants.map(grantText).join(' ')}`
      }
      isInAddress
      columns={columns.filter((one) => one !== undefined && one !== false)}
    />
  );
}

function Act({ row, act }: { row: Row; act: (doing: Doing) => void }) {
  const { email, role } = row.member;
  const mayManage = useMayManage();
  return (
    <Button
      className="second small"
      aria-label={`Change ${email}`}
      disabled={role !== 'member' && !mayManage(role)}
      onClick={() => act({ kind: 'choose', row })}
    >
      Change…
    </Button>
  );
}

function Lines({ of }: { of: readonly string[] }) {
  if (of.length === 0) return <span className="soft">–</span>;
  return (
    <div>
      {of.map((one) => (
        <div key={one}>{one}</div>
      ))}
    </div>
  );
}

/** When their permissions and grants end. */
function Ends({ of: { ends, grants } }: { of: Row }) {
  const keys = Object.entries(ends);
  if (keys.length + grants.length === 0) return <span className="soft">–</span>;
  return (
    <div>
      {keys.map(([key, at]) => (
        <div key={key}>
          <span className="soft">{key}</span> <Until at={at} />
        </div>
      ))}
      {grants.map(({ grant }) => (
        <div key={grant.id}>
          <Until at={grant.expires_at} />
        </div>
      ))}
    </div>
  );
}

/** People who are not members and have access by a grant. */
function Others({ grants }: { grants: readonly Grant[] }) {
  const { orgID } = useWho();
  return (
    <Panel
      title="Kubernetes access without membership"
      cli="andromeda members grants"
      operation={`GET /organizations/${orgID}/grants`}
    >
      <Table
        name="grants"
        rows={grants.toSorted(byEnd)}
        id={({ grant }) => grant.id}
        text={(one) => `${one.grant.username} ${grantText(one)}`}
        columns={[
          { name: 'Address', cell: ({ grant }) => <PersonLink id={grant.user_id} email={grant.username} /> },
          { name: 'Grant', cell: grantText },
          { name: 'Since', cell: ({ grant }) => <Age at={grant.granted_at} past="" /> },
          { name: 'Until', cell: ({ grant }) => <Until at={grant.expires_at} /> },
        ]}
      />
    </Panel>
  );
}

const marks = { role: 'warn', granted: 'good', included: 'busy' } as const;

function Mark({ way }: { way: Way }) {
  if (way === undefined) return <span className="soft absent">–</span>;
  return (
    <span className={marks[way]} title={ways[way]}>
      <Shape kind={marks[way]} />
      <span className="hidden">{ways[way]}</span>
    </span>
  );
}

function rowsOfFile(rows: readonly Row[], catalog: readonly Permission[]): string[][] {
  const keys = catalog.map(({ key }) => key);
  const head = ['address', 'user name', 'role', 'since', ...keys, 'grants', 'until'];
  const body = rows.map((row) => {
    const { email, organization_username: name, role, created_at: since } = row.member;
    const ends = [
      ...Object.entries(row.ends).map((end) => end.join(' ')),
      ...row.grants.map(({ grant }) => grant.expires_at ?? 'no end date'),
    ];
    const reached = keys.map((key) => wayTo(key, row, catalog) ?? '');
    return [
      email,
      name.username,
      role,
      since,
      ...reached,
      row.grants.map(grantText).join('; '),
      ends.join('; '),
    ];
  });
  return [head, ...body];
}
