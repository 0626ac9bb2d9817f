/** Who has access to a cluster, by which way, and whether the cluster has the access list. */

import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { count } from '../count.ts';
import { PersonLink, Until, WayIn } from '../parts/access-state.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { SaveCsv } from '../parts/save.tsx';
import { State } from '../parts/state.tsx';
import { Strip } from '../parts/strip.tsx';
import { Table } from '../parts/table.tsx';
import { Text } from '../parts/text.tsx';
import { LastReport } from '../parts/time.tsx';
import {
  type AccessList,
  type Delivery,
  deliverySteps,
  opensText,
  readAccessList,
  readAccessOf,
  readGrants,
  type Way,
  waysOf,
  wayText,
} from '../people.ts';
import { readMemberPermissions, readMembers } from '../reads.ts';
import { useWho } from '../who.tsx';

interface Sides {
  slurm: boolean;
  kubernetes: boolean;
}

interface Row {
  userId: string;
  email: string;
  username: string;
  isMember: boolean;
  ways: Way[];
  account: string;
}

export default function ClusterPeoplePage() {
  const who = useWho();
  const { orgID, me } = who;
  const { clusterId } = useParams({ from: '/frame/clusters/$clusterId/people' });
  // What this page needs to know of the cluster, it reads of its own reader.
  const own = useQuery(readAccessOf(orgID, [me.user.id]));
  const permissions = useQuery(readMemberPermissions(who));
  const delivery = own.data?.clusters.find((one) => one.cluster_id === clusterId);
  return (
    <Page
      title={`Access to ${delivery?.cluster_name ?? 'the cluster'}`}
      actions={
        <Link to="/clusters/$clusterId" params={{ clusterId }}>
          Cluster
        </Link>
      }
    >
      <Loaded of={permissions}>
        {(known) =>
          known === null ? (
            <Empty>
              Only people with the permission <code>members.manage</code> can see this.
            </Empty>
          ) : (
            <Loaded of={own}>
              {({ people }) => {
                const on = people[0]?.clusters.find((one) => one.cluster_id === clusterId);
                return delivery && on ? (
                  <People
                    delivery={delivery}
                    sides={{ slurm: on.slurm !== undefined, kubernetes: on.kubernetes !== undefined }}
                  />
                ) : (
                  <Empty action={<Link to="/clusters">Clusters</Link>}>
                    Your organization has no such cluster in service.
                  </Empty>
                );
              }}
            </Loaded>
          )
        }
      </Loaded>
    </Page>
  );
}

function People({ delivery, sides }: { delivery: Delivery; sides: Sides }) {
  const who = useWho();
  const { cluster_id: clusterId, failure } = delivery;
  const list = useQuery({ ...readAccessList(who, clusterId), enabled: sides.slurm });
  const { members, rows } = useRows(clusterId, sides, list.data ?? undefined);
  return (
    <>
      <p className="sentence">
        {count(rows.length, 'person has', 'people have')} access
        {sides.slurm && `, ${list.data?.users.length ?? 0} of them over SSH`}.
      </p>
      <Panel
        title="Access list"
        cli="andromeda members grants"
        operation={`GET /organizations/${who.orgID}/clusters/${clusterId}/access`}
      >
        {sides.slurm && list.data && <ListStrip list={list.data} delivery={delivery} />}
        <LastReport clusterId={clusterId} at={delivery.observed_at} />
        {failure !== undefined && (
          <p>
            <State kind="bad">Needs attention</State> <Text of={failure} />
          </p>
        )}
      </Panel>
      <Panel
        title="People"
        tools={<SaveCsv name="people-of-cluster.csv" rows={() => rowsOfFile(delivery.cluster_name, rows)} />}
      >
        <Loaded of={members}>{() => <PeopleTable rows={rows} isSlurm={sides.slurm} />}</Loaded>
      </Panel>
    </>
  );
}

/** Everyone who has access: members, and others by a grant. */
function useRows(
  clusterId: string,
  sides: Sides,
  list: AccessList | undefined,
): { members: UseQueryResult; rows: Row[] } {
  const who = useWho();
  const members = useQuery(readMembers(who.orgID));
  const permissions = useQuery(readMemberPermissions(who));
  const grants = useQuery(readGrants(who));
  const granted = new Map(permissions.data?.members.map((one) => [one.user_id, one]));
  const here = (grants.data ?? []).filter(({ grant }) => grant.resource_id === clusterId);
  const accounts = new Map(list?.users.map((one) => [one.user_id, one.desired_login_state]));
  const ofMembers = (members.data?.members ?? []).map((member) => ({
    userId: member.user_id,
    email: member.email,
    username: member.organization_username.username,
    isMember: true,
    ways: waysOf(sides, member, granted.get(member.user_id) ?? {}, here),
    account: accountText(accounts.get(member.user_id)),
  }));
  const memberIds = new Set(ofMembers.map(({ userId }) => userId));
  const others = new Map(here.map(({ grant }) => [grant.user_id, grant.username]));
  const ofOthers = [...others].map(([userId, email]) => ({
    ...{ userId, email, username: '', isMember: false, account: '' },
    ways: waysOf(sides, { user_id: userId }, {}, here),
  }));
  const rows = [...ofMembers, ...ofOthers.filter(({ userId }) => !memberIds.has(userId))];
  return { members, rows: rows.filter(({ ways }) => ways.length > 0) };
}

function accountText(state: 'ready' | 'waiting_for_key' | undefined): string {
  if (state === undefined) return '–';
  return state === 'ready' ? 'ready' : 'needs a key';
}

/** How far a list in this state has come, and what is missing. */
const states = {
  pending: ['pending', 'The list has not been accepted yet.'],
  rejected: ['rejected', 'The list was refused.'],
  accepted: ['pending', 'The next sync applies it.'],
  failed: ['failed', 'The cluster could not apply it.'],
  stale: ['unknown', 'The cluster has not reported recently, so its state is unknown.'],
  converged: ['there', undefined],
} as const;

function ListStrip({ list, delivery }: { list: AccessList; delivery: Delivery }) {
  const { generation, updated_at: at } = list;
  const [state, usual] = states[list.state];
  const steps = deliverySteps({
    desired: { name: `desired ${generation}`, at },
    isAccepted: list.state !== 'pending' && list.state !== 'rejected',
    state,
  });
  const missing = state === 'failed' ? (delivery.failure ?? usual) : usual;
  return <Strip of={`list/${delivery.cluster_id}/${generation}`} steps={steps} missing={missing} />;
}

function PeopleTable({ rows, isSlurm }: { rows: readonly Row[]; isSlurm: boolean }) {
  return (
    <Table
      name="people"
      rows={rows}
      id={({ userId }) => userId}
      text={({ email, username, ways, account }) =>
        `${email} ${username} ${account} ${ways.map((way) => `${opensText[way.opens]} ${wayText(way)}`).join(' ')}`
      }
      isInAddress
      columns={[
        { name: 'Address', cell: ({ userId, email }) => <PersonLink id={userId} email={email} /> },
        {
          name: 'User name',
          cell: ({ username, isMember }) =>
            isMember ? username : <span className="soft">not a member</span>,
        },
        ...(isSlurm ? [{ name: 'Slurm account', cell: ({ account }: Row) => account }] : []),
        {
          name: 'Access',
          cell: ({ ways }) => [...new Set(ways.map(({ opens }) => opensText[opens]))].join(', '),
        },
        { name: 'Through', cell: ({ ways }) => [...new Set(ways.map(wayText))].join(', ') },
        { name: 'Until', cell: ({ ways }) => <Ends ways={ways} /> },
      ]}
    />
  );
}

/** When they end by themselves: each way where they differ, since what is left opens less. */
function Ends({ ways }: { ways: readonly Way[] }) {
  const [first] = ways;
  if (ways.every(({ until }) => until === first?.until)) return <Until at={first?.until} />;
  return (
    <ul className="plain">
      {ways.map((way) => (
        <li key={`${way.opens} ${way.name} ${way.grant_id ?? ''}`}>
          <WayIn way={way} />: <Until at={way.until} />
        </li>
      ))}
    </ul>
  );
}

function rowsOfFile(cluster: string, rows: readonly Row[]): string[][] {
  const head = ['cluster', 'address', 'user name', 'opens', 'by', 'way', 'since', 'until'];
  const body = rows.flatMap(({ email, username, ways }) =>
    ways.map((way) => {
      const { opens, by, since, until = '' } = way;
      return [cluster, email, username, opens, by, wayText(way), since, until];
    }),
  );
  return [head, ...body];
}
