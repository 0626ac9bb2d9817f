/** Who has access to what, and by which way; who joins and leaves. */

import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../api/business.ts';
import { csv } from '../../../domain/csv.ts';
import { AsCommand } from '../parts/copy.tsx';
import { AddMembers, ChangePermissions, RemoveMember } from '../parts/member-forms.tsx';
import { Loaded, Page, Panel } from '../parts/page.tsx';
import { Shape } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { readCatalog, readMemberPermissions, readMembers } from '../reads.ts';
import { save } from '../save.ts';
import { useWho } from '../who.tsx';

export type Member = components['schemas']['Membership'];

export interface Row {
  member: Member;
  /** What was granted; undefined where the reader may not know. */
  granted: readonly string[] | undefined;
}

type Way = 'role' | 'granted' | 'included' | undefined;
type Catalog = { key: string; implies: string[] }[];
type Doing = { kind: 'add' } | { kind: 'change' | 'remove'; row: Row } | undefined;

/** How a member comes to a permission. */
function wayTo(key: string, { member, granted = [] }: Row, catalog: Catalog): Way {
  if (member.role !== 'member') return 'role';
  if (granted.includes(key)) return 'granted';
  return catalog.some((one) => granted.includes(one.key) && one.implies.includes(key))
    ? 'included'
    : undefined;
}

const ways = { role: 'by role', granted: 'granted', included: 'included in another' } as const;

export function MembersPage() {
  const { orgID, isManager } = useWho();
  const [doing, setDoing] = useState<Doing>();
  const members = useQuery(readMembers(orgID));
  const permissions = useQuery(readMemberPermissions(orgID));
  const profiles = useQuery(readCatalog());
  const catalog = (profiles.data?.permissions ?? []).filter(({ key }) => !key.startsWith('organization.'));
  const granted = new Map(permissions.data?.members.map((one) => [one.user_id, one.permissions]));
  const rows = (members.data?.members ?? []).map((member) => ({
    member,
    granted: permissions.data ? (granted.get(member.user_id) ?? []) : undefined,
  }));
  const close = () => setDoing(undefined);
  return (
    <Page
      title="Members"
      isWide
      sentence={members.data && <Sentence rows={rows} />}
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
          {() => <MemberTable rows={rows} catalog={catalog} act={isManager ? setDoing : undefined} />}
        </Loaded>
        <p className="soft small">
          <Shape kind="good" /> granted, <Shape kind="busy" /> included in another permission,{' '}
          <Shape kind="warn" /> by role: owners and admins hold everything.
        </p>
      </Panel>
      {doing?.kind === 'add' && <AddMembers close={close} />}
      {doing?.kind === 'change' && <ChangePermissions row={doing.row} catalog={catalog} close={close} />}
      {doing?.kind === 'remove' && <RemoveMember row={doing.row} close={close} />}
    </Page>
  );
}

function Sentence({ rows }: { rows: readonly Row[] }) {
  const managers = rows.filter(({ member }) => member.role !== 'member').length;
  const ssh = rows.filter(
    ({ member, granted }) => member.role !== 'member' || granted?.some((key) => /ssh|configure/.test(key)),
  ).length;
  const isKnown = rows.some(({ granted }) => granted !== undefined);
  return (
    <>
      {rows.length} {rows.length === 1 ? 'member' : 'members'}, {managers} of them owner or admin.
      {isKnown && ` ${ssh} may log in over SSH.`}
    </>
  );
}

function MemberTable({
  rows,
  catalog,
  act,
}: {
  rows: readonly Row[];
  catalog: readonly { key: string; description: string; implies: string[] }[];
  act: ((doing: Doing) => void) | undefined;
}) {
  const { filter } = useSearch({ from: '/frame/members' });
  const navigate = useNavigate({ from: '/members' });
  const isKnown = rows.some(({ granted }) => granted !== undefined);
  const columns: Column<Row>[] = [
    { name: 'Address', cell: ({ member }) => member.email },
    { name: 'User name', cell: ({ member }) => member.organization_username.username },
    { name: 'Role', cell: ({ member }) => member.role },
    ...(isKnown ? catalog : []).map(({ key }) => ({
      name: key,
      cell: (row: Row) => <Mark way={wayTo(key, row, [...catalog])} />,
    })),
    { name: 'Since', cell: ({ member }) => <Age at={member.created_at} past="" /> },
  ];
  if (act) {
    columns.push({
      name: 'Do',
      cell: (row) => (
        <span className="buttons inline">
          {row.member.role === 'member' && (
            <button type="button" className="second small" onClick={() => act({ kind: 'change', row })}>
              Permissions…
            </button>
          )}
          <button type="button" className="second small" onClick={() => act({ kind: 'remove', row })}>
            Remove…
          </button>
        </span>
      ),
    });
  }
  return (
    <Table
      name="members"
      rows={rows}
      id={({ member }) => member.user_id}
      text={({ member, granted = [] }) =>
        `${member.email} ${member.organization_username.username} ${member.role} ${granted.join(' ')}`
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

const marks = { role: 'warn', granted: 'good', included: 'busy' } as const;

function Mark({ way }: { way: Way }) {
  if (way === undefined) return <span className="soft">–</span>;
  return (
    <span className={marks[way]} title={ways[way]}>
      <Shape kind={marks[way]} />
      <span className="hidden">{ways[way]}</span>
    </span>
  );
}

function exportRows(rows: readonly Row[], catalog: Catalog): void {
  const keys = catalog.map(({ key }) => key);
  const head = ['address', 'user name', 'role', 'since', ...keys];
  const body = rows.map((row) => [
    row.member.email,
    row.member.organization_username.username,
    row.member.role,
    row.member.created_at,
    ...keys.map((key) => wayTo(key, row, catalog) ?? ''),
  ]);
  save('members.csv', 'text/csv', csv([head, ...body]));
}
