/** One person: their access, its ways with start and end, and its delivery to each cluster. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { wayText } from '../../../domain/access/ways-in.ts';
import { csv } from '../../../domain/text.ts';
import { Empty, Facts, Loaded, Page, Panel, type Reading, said } from '../parts/page.tsx';
import {
  AccessStates,
  AccessStrip,
  obstacleText,
  PeopleLink,
  Until,
  WayIn,
} from '../parts/people/access-state.tsx';
import { ChangeButtons, ChangeForm, type ChangeKind } from '../parts/people/member-forms.tsx';
import { SaveCsv } from '../parts/save.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age, count, LastReport, Moment, State } from '../parts/values.tsx';
import { type Delivery, type MemberAccess, progressOf, readAccessOf, type Way } from '../people.ts';
import { readMemberPermissions, useWho } from '../reads.ts';

export function PersonPage() {
  const { orgID } = useWho();
  const { userId } = useParams({ from: '/frame/members/$userId' });
  const access = useQuery(readAccessOf(orgID, [userId]));
  const person = access.data?.people[0];
  return (
    <Page
      title={person?.email ?? 'Person'}
      sentence={person && said(access, () => <Sentence person={person} />)}
    >
      <Loaded of={access}>
        {({ clusters }) =>
          person === undefined ? (
            <Empty action={<Link to="/members">Members</Link>}>
              No one with this ID is or was a member here, or has a grant.
            </Empty>
          ) : (
            <>
              <About person={person} />
              <Access of={access} person={person} clusters={clusters} />
              {clusters.map((cluster) => (
                <OnCluster key={cluster.cluster_id} person={person} cluster={cluster} />
              ))}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Sentence({ person }: { person: MemberAccess }) {
  const reached = person.clusters.filter(({ ways }) => ways.length > 0).length;
  const who = person.is_member ? `${person.role === 'member' ? 'A' : 'An'} ${person.role}` : 'Not a member';
  const name = person.name === person.email ? '' : `${person.name}. `;
  return `${name}${who}, with access to ${reached} of ${count(person.clusters.length, 'cluster')}.`;
}

function Actions({ person }: { person: MemberAccess }) {
  const { user_id: userId, email, role, is_member: isMember, clusters } = person;
  const [kind, setKind] = useState<ChangeKind>();
  const permissions = useQuery(readMemberPermissions(useWho()));
  if (!isMember || role === undefined) return null;
  const own = permissions.data?.members.find(({ user_id: id }) => id === userId);
  const granted = role === 'member' ? (own?.permissions ?? []) : [];
  const grants = clusters.flatMap(({ ways }) => ways).filter(({ by }) => by === 'grant').length;
  const subject = { userId, email, role, granted, ends: own?.expires_at ?? {}, grants };
  return (
    <Loaded of={permissions}>
      {(known) =>
        known && (
          <>
            <ChangeButtons role={role} choose={setKind} />
            {kind && <ChangeForm kind={kind} subject={subject} close={() => setKind(undefined)} />}
          </>
        )
      }
    </Loaded>
  );
}

const keyColumns: Column<MemberAccess['keys'][number]>[] = [
  { name: 'Fingerprint', cell: (key) => <code className="cut">{key.fingerprint}</code> },
  { name: 'Registered', cell: (key) => <Age at={key.created_at} /> },
  {
    name: 'State',
    cell: (key) => (key.lapsed ? <State kind="warn">Expired</State> : <State kind="good">Active</State>),
  },
];

function About({ person }: { person: MemberAccess }) {
  const { orgID } = useWho();
  const { user_id: id, username, member_since: since, changed_at: changed } = person;
  const use = person.username_state === 'frozen' ? 'permanent' : 'not used yet';
  return (
    <Panel
      title="Who"
      cli={`andromeda members access ${id}`}
      operation={`GET /organizations/${orgID}/access?user_ids=${id}`}
    >
      <Facts
        of={{
          Email: person.email,
          Name: person.name,
          Role: person.role ?? 'not a member',
          'User name': username === undefined ? '–' : `${username}, ${use}`,
          'Member since': since && <Moment at={since} />,
          [person.is_member ? 'Last changed' : 'Was a member until']: changed && <Moment at={changed} />,
        }}
      />
      <Actions person={person} />
      <h3>SSH keys</h3>
      <Table
        name="keys"
        rows={person.keys}
        id={(key) => key.fingerprint}
        columns={keyColumns}
        none={<p className="soft">No active keys.</p>}
      />
    </Panel>
  );
}

interface WayRow {
  cluster: Delivery;
  way: Way;
}

const wayColumns: Column<WayRow>[] = [
  { name: 'Cluster', cell: ({ cluster }) => <PeopleLink of={cluster} /> },
  { name: 'Access', cell: ({ way }) => <WayIn way={way} /> },
  {
    name: 'Since',
    cell: ({ way }) => (
      <span>
        {way.by !== 'grant' && <span className="soft">at least </span>}
        <Age at={way.since} />
      </span>
    ),
  },
  { name: 'Until', cell: ({ way }) => <Until at={way.until} /> },
];

interface AccessOptions {
  of: Reading<unknown>;
  person: MemberAccess;
  clusters: readonly Delivery[];
}

function Access({ of, person, clusters }: AccessOptions) {
  const rows = clusters.flatMap((cluster): WayRow[] => {
    const on = person.clusters.find((one) => one.cluster_id === cluster.cluster_id);
    return (on?.ways ?? []).map((way) => ({ cluster, way }));
  });
  return (
    <Panel
      title="Access"
      tools={<SaveCsv name="access-of-person.csv" of={of} text={() => csv(rowsOfFile(person, rows))} />}
    >
      <Table
        name="ways"
        rows={rows}
        id={({ cluster, way }) => `${cluster.cluster_id} ${way.opens} ${way.name} ${way.grant_id ?? ''}`}
        columns={wayColumns}
        none={<p className="soft">No access to any cluster.</p>}
      />
    </Panel>
  );
}

function OnCluster({ person, cluster }: { person: MemberAccess; cluster: Delivery }) {
  const on = person.clusters.find((one) => one.cluster_id === cluster.cluster_id);
  if (!on) return null;
  return (
    <Panel title={<PeopleLink of={cluster} />}>
      <AccessStates on={on} />
      <LastReport clusterId={cluster.cluster_id} at={cluster.observed_at} />
      {on.slurm?.account !== 'none' && on.slurm?.obstacle !== undefined && (
        <p>Cannot log in now: {obstacleText(on.slurm.obstacle)}</p>
      )}
      <AccessStrip people={[person]} cluster={cluster} />
    </Panel>
  );
}

function rowsOfFile({ email }: MemberAccess, rows: readonly WayRow[]): string[][] {
  const head = ['email', 'cluster', 'opens', 'by', 'way', 'since', 'until'];
  const body = rows.map(({ cluster, way }) => {
    const { opens, by, since, until = '' } = way;
    return [email, cluster.cluster_name, opens, by, wayText(way), since, until];
  });
  return [head, ...body];
}

export function MemberChangePage() {
  const { orgID } = useWho();
  const { people = '' } = useSearch({ from: '/frame/members/change' });
  const ids = people.split(',').filter(Boolean);
  const access = useQuery({ ...readAccessOf(orgID, ids), enabled: ids.length > 0 });
  return (
    <Page
      title="Progress"
      sentence={said(access, (known) => <ProgressSentence {...known} />)}
      actions={<Link to="/members">Members</Link>}
    >
      {ids.length === 0 ? (
        <Empty action={<Link to="/members">Members</Link>}>No one is named in this address.</Empty>
      ) : (
        <Loaded of={access}>
          {(known) => (
            <>
              <Who people={known.people} ids={ids} />
              {known.clusters.map((cluster) => (
                <Progress key={cluster.cluster_id} people={known.people} cluster={cluster} />
              ))}
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

function ProgressSentence({
  people,
  clusters,
}: {
  people: readonly MemberAccess[];
  clusters: readonly Delivery[];
}) {
  const there = clusters.filter((one) => progressOf(people, one).isThere).length;
  if (people.length === 0) return <>None of these people is in the organization.</>;
  if (clusters.length === 0) return <>No cluster in service is affected.</>;
  if (there === clusters.length)
    return <>{there === 1 ? 'The cluster is' : `All ${there} clusters are`} up to date.</>;
  return `${there} of ${clusters.length} clusters are up to date.`;
}

function Who({ people, ids }: { people: readonly MemberAccess[]; ids: readonly string[] }) {
  const { orgID } = useWho();
  return (
    <Panel
      title={people.length === 1 ? 'Who' : `${people.length} people`}
      cli={`andromeda members access ${people.map(({ user_id: id }) => id).join(' ')}`}
      operation={`GET /organizations/${orgID}/access?user_ids=${ids.join(',')}`}
    >
      <ul className="plain">
        {people.map((person) => (
          <li key={person.user_id}>
            <Link to="/members/$userId" params={{ userId: person.user_id }}>
              {person.email}
            </Link>{' '}
            <span className="soft">
              {person.is_member ? person.role : 'not a member'}
              {person.username !== undefined && `, ${person.username}`}
              {person.changed_at !== undefined && (
                <>
                  , changed <Age at={person.changed_at} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Progress({ people, cluster }: { people: readonly MemberAccess[]; cluster: Delivery }) {
  const { isThere } = progressOf(people, cluster);
  return (
    <Panel
      title={<PeopleLink of={cluster} />}
      tools={isThere ? <State kind="good">Up to date</State> : <State kind="busy">In progress</State>}
    >
      <AccessStrip people={people} cluster={cluster} />
      <LastReport clusterId={cluster.cluster_id} at={cluster.observed_at} />
    </Panel>
  );
}
