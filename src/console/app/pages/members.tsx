/** Who has access to what, by which way and until when; who joins and leaves. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { csv } from '../../../domain/csv.ts';
import { Until } from '../parts/access-state.tsx';
import { AsCommand } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Loaded, Page, Panel } from '../parts/page.tsx';
import { AddMembers } from '../parts/people/add-members.tsx';
import { ChangePermissions, ChangeRole, RemoveMember, type Subject } from '../parts/people/member-forms.tsx';
import type { Permission } from '../parts/people/permission-choice.tsx';
import { Shape } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { type Grant, readGrants } from '../people.ts';
import { readCatalog, readMemberPermissions, readMembers } from '../reads.ts';
import { save } from '../save.ts';
import { useWho, type Who } from '../who.tsx';

export type Member = components['schemas']['Membership'];

export interface Row {
  member: Member;
  /** What was granted; undefined where the reader may not know. */
  granted: readonly string[] | undefined;
  /** Of the permissions that end by themselves, when. */
  ends: readonly [key: string, at: string][];
  /** Live Kubernetes grants, the first to end first. */
  grants: readonly Grant[];
}

type Way = 'role' | 'granted' | 'included' | undefined;
type Doing = { kind: 'add' } | { kind: 'choose' | 'permissions' | 'role' | 'remove'; row: Row } | undefined;

/** How a member comes to a permission. */
function wayTo(key: string, { member, granted = [] }: Row, catalog: readonly Permission[]): Way {
  if (member.role !== 'member') return 'role';
  if (granted.includes(key)) return 'granted';
  return catalog.some((one) => granted.includes(one.key) && one.implies.includes(key))
    ? 'included'
    : undefined;
}

const ways = { role: 'by role', granted: 'granted', included: 'included in another' } as const;

export function MembersPage() {
  const who = useWho();
  const { orgID, isManager } = who;
  const [doing, setDoing] = useState<Doing>();
  const members = useQuery(readMembers(orgID));
  const permissions = useQuery(readMemberPermissions(who));
  const grants = useQuery(readGrants(who));
  const profiles = useQuery(readCatalog());
  const catalog = (profiles.data?.permissions ?? []).filter(({ key }) => !key.startsWith('organization.'));
  const granted = new Map(permissions.data?.members.map((one) => [one.user_id, one]));
  const grantsOf = Map.groupBy(grants.data ?? [], ({ grant }) => grant.user_id);
  const rows = (members.data?.members ?? []).map((member) => ({
    member,
    granted: permissions.data ? (granted.get(member.user_id)?.permissions ?? []) : undefined,
    ends: Object.entries(granted.get(member.user_id)?.expires_at ?? {}),
    grants: (grantsOf.get(member.user_id) ?? []).toSorted(byEnd),
  }));
  const known = new Set(rows.map(({ member }) => member.user_id));
  // Drawn once: thousands of people cost the more the more often.
  const isWhole = [permissions, grants, profiles].every(({ isPending }) => !isPending);
  const others = (grants.data ?? []).filter(({ grant }) => !known.has(grant.user_id));
  return (
    <Page
      title="Members"
      isWide
      sentence={members.data && <Sentence rows={rows} others={others} />}
      actions={
        isManager && (
          <button type="button" onClick={() => setDoing({ kind: 'add' })}>
            Add members
          </button>
        )
      }
    >
      <Panel
        title="Who has access to what"
        tools={
          <>
            <button type="button" className="link small" onClick={() => exportRows(rows, catalog)}>
              Save as CSV
            </button>
            <AsCommand
              api="Business"
              cli="andromeda members list --permissions"
              operation={`GET /organizations/${orgID}/permissions`}
            />
          </>
        }
      >
        <Loaded of={members}>
          {() =>
            isWhole ? (
              <MemberTable rows={rows} catalog={catalog} act={permissions.data ? setDoing : undefined} />
            ) : (
              <p className="loading" role="status">
                Loading…
              </p>
            )
          }
        </Loaded>
        <p className="soft small">
          <Shape kind="good" /> granted, <Shape kind="busy" /> included in another permission,{' '}
          <Shape kind="warn" /> by role: owners and admins have everything.
        </p>
      </Panel>
      {members.data && others.length > 0 && <Others grants={others} />}
      <Form doing={doing} catalog={catalog} act={setDoing} close={() => setDoing(undefined)} />
    </Page>
  );
}

function byEnd({ grant: a }: Grant, { grant: b }: Grant): number {
  return (a.expires_at ?? '~') < (b.expires_at ?? '~') ? -1 : 1;
}

function Form({
  doing,
  catalog,
  act,
  close,
}: {
  doing: Doing;
  catalog: readonly Permission[];
  act: (doing: Doing) => void;
  close: () => void;
}) {
  if (!doing) return null;
  if (doing.kind === 'add') return <AddMembers catalog={catalog} close={close} />;
  const { member, granted = [], ends, grants } = doing.row;
  const subject: Subject = {
    userId: member.user_id,
    email: member.email,
    role: member.role,
    granted: member.role === 'member' ? granted : [],
    ends: Object.fromEntries(ends),
  };
  if (doing.kind === 'choose') return <Choice key="choose" row={doing.row} act={act} close={close} />;
  if (doing.kind === 'role') return <ChangeRole subject={subject} close={close} />;
  if (doing.kind === 'remove') return <RemoveMember subject={subject} grants={grants.length} close={close} />;
  return <ChangePermissions subject={subject} catalog={catalog} close={close} />;
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
      {rows.length} {rows.length === 1 ? 'member' : 'members'}, {managers} of them owner or admin.
      {isKnown && ` ${ssh} may log in over SSH.`}
      {guests > 0 && ` ${guests} more ${guests === 1 ? 'holds' : 'hold'} a Kubernetes grant.`}
    </>
  );
}

/** What a grant opens, such as `beta/ml: developer`. */
function grantText({ grant, cluster_name: cluster }: Grant): string {
  const where = grant.scope === undefined ? cluster : `${cluster}/${grant.scope}`;
  return `${where}: ${grant.relation.replace('kubernetes.', '')}`;
}

/** What concerns an owner needs an owner. */
function mayManage({ member }: Row, { isManager, membership }: Who): boolean {
  return isManager && (member.role !== 'owner' || membership?.role === 'owner');
}

/** What can be changed about a member. */
function Choice({ row, act, close }: { row: Row; act: (doing: Doing) => void; close: () => void }) {
  const who = useWho();
  const { email, role } = row.member;
  return (
    <Dialog title={`Change ${email}`} onClose={close}>
      <div className="buttons">
        {role === 'member' && (
          <button
            type="button"
            data-first
            className="second"
            onClick={() => act({ kind: 'permissions', row })}
          >
            Permissions…
          </button>
        )}
        {mayManage(row, who) && (
          <>
            <button type="button" className="second" onClick={() => act({ kind: 'role', row })}>
              Role…
            </button>
            <button type="button" className="second" onClick={() => act({ kind: 'remove', row })}>
              Remove…
            </button>
          </>
        )}
      </div>
    </Dialog>
  );
}

function MemberTable({
  rows,
  catalog,
  act,
}: {
  rows: readonly Row[];
  catalog: readonly Permission[];
  act: ((doing: Doing) => void) | undefined;
}) {
  const who = useWho();
  const { filter } = useSearch({ from: '/frame/members' });
  const navigate = useNavigate({ from: '/members' });
  const isKnown = rows.some(({ granted }) => granted !== undefined);
  const hasGrants = rows.some(({ grants }) => grants.length > 0);
  const columns: Column<Row>[] = [
    {
      name: 'Address',
      cell: ({ member }) => (
        <Link to="/members/$userId" params={{ userId: member.user_id }}>
          {member.email}
        </Link>
      ),
    },
    { name: 'User name', cell: ({ member }) => member.organization_username.username },
    { name: 'Role', cell: ({ member }) => member.role },
    ...(isKnown ? catalog : []).map(({ key }) => ({
      name: key,
      cell: (row: Row) => <Mark way={wayTo(key, row, catalog)} />,
    })),
    { name: 'Since', cell: ({ member }) => <Age at={member.created_at} past="" /> },
  ];
  if (hasGrants) columns.push({ name: 'Grants', cell: ({ grants }) => <Lines of={grants.map(grantText)} /> });
  if (hasGrants || rows.some(({ ends }) => ends.length > 0))
    columns.push({ name: 'Until', cell: (row) => <Ends of={row} /> });
  if (act) {
    columns.push({
      name: 'Actions',
      cell: (row) => (
        <button
          type="button"
          className="second small"
          aria-label={`Change ${row.member.email}`}
          disabled={row.member.role !== 'member' && !mayManage(row, who)}
          onClick={() => act({ kind: 'choose', row })}
        >
          Change…
        </button>
      ),
    });
  }
  return (
    <Table
      name="members"
      rows={rows}
      id={({ member }) => member.user_id}
      text={({ member, granted = [], grants }) =>
        `${member.email} ${member.organization_username.username} ${member.role} ${granted.join(' ')} ${grants.map(grantText).join(' ')}`
      }
      filter={filter ?? ''}
      onFilter={(text) =>
        void navigate({
          search: ({ filter: _old, ...rest }) => (text === '' ? rest : { ...rest, filter: text }),
          replace: true,
        })
      }
      columns={columns}
    />
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

/** When something of theirs ends by itself: each permission that does, and each grant. */
function Ends({ of: { ends, grants } }: { of: Row }) {
  if (ends.length + grants.length === 0) return <span className="soft">–</span>;
  return (
    <div>
      {ends.map(([key, at]) => (
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

/** Who is no member and reaches a cluster all the same. */
function Others({ grants }: { grants: readonly Grant[] }) {
  const { orgID } = useWho();
  return (
    <Panel
      title="Kubernetes access without membership"
      tools={
        <AsCommand
          api="Business"
          cli="andromeda members grants"
          operation={`GET /organizations/${orgID}/grants`}
        />
      }
    >
      <Table
        name="grants"
        rows={grants.toSorted(byEnd)}
        id={({ grant }) => grant.id}
        text={(one) => `${one.grant.username} ${grantText(one)}`}
        columns={[
          {
            name: 'Address',
            cell: ({ grant }) => (
              <Link to="/members/$userId" params={{ userId: grant.user_id }}>
                {grant.username}
              </Link>
            ),
          },
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

function exportRows(rows: readonly Row[], catalog: readonly Permission[]): void {
  const keys = catalog.map(({ key }) => key);
  const head = ['address', 'user name', 'role', 'since', ...keys, 'grants', 'until'];
  const body = rows.map((row) => [
    row.member.email,
    row.member.organization_username.username,
    row.member.role,
    row.member.created_at,
    ...keys.map((key) => wayTo(key, row, catalog) ?? ''),
    row.grants.map(grantText).join('; '),
    [
      ...row.ends.map(([key, at]) => `${key} ${at}`),
      ...row.grants.map(({ grant }) => grant.expires_at ?? 'no end date'),
    ].join('; '),
  ]);
  save('members.csv', 'text/csv', csv([head, ...body]));
}
