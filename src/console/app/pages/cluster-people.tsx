/** Who reaches a cluster, by which way, and whether the cluster has the list of them. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { csv } from '../../../domain/csv.ts';
import { Until, WayIn } from '../parts/access-state.tsx';
import { AsCommand } from '../parts/copy.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { State } from '../parts/state.tsx';
import { type Step, Strip } from '../parts/strip.tsx';
import { Table } from '../parts/table.tsx';
import { Reported } from '../parts/time.tsx';
import {
  type AccessList,
  type Delivery,
  opensText,
  readAccessList,
  readAccessOf,
  readGrants,
  type Way,
  wayText,
} from '../people.ts';
import { readMemberPermissions, readMembers } from '../reads.ts';
import { save } from '../save.ts';
import { waysOf } from '../ways.ts';
import { useWho } from '../who.tsx';

interface Row {
  userId: string;
  email: string;
  username: string;
  isMember: boolean;
  ways: Way[];
  account: string;
}

export function ClusterPeoplePage() {
  const who = useWho();
  const { orgID, me } = who;
  const { clusterId } = useParams({ from: '/frame/clusters/$clusterId/people' });
  // What this page needs to know of the cluster, it reads of its own reader.
  const own = useQuery(readAccessOf(orgID, [me.user.id], [clusterId]));
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

function People({ delivery, sides }: { delivery: Delivery; sides: { slurm: boolean; kubernetes: boolean } }) {
  const who = useWho();
  const { orgID } = who;
  const clusterId = delivery.cluster_id;
  const members = useQuery(readMembers(orgID));
  const permissions = useQuery(readMemberPermissions(who));
  const grants = useQuery(readGrants(who));
  const list = useQuery({ ...readAccessList(who, clusterId), enabled: sides.slurm });
  const granted = new Map(permissions.data?.members.map((one) => [one.user_id, one]));
  const here = (grants.data ?? []).filter(({ grant }) => grant.resource_id === clusterId);
  const accounts = new Map(list.data?.users.map((one) => [one.user_id, one.desired_login_state]));
  const memberIds = new Set(members.data?.members.map((one) => one.user_id));
  const guests = [...new Map(here.map(({ grant }) => [grant.user_id, grant.username]))].filter(
    ([id]) => !memberIds.has(id),
  );
  const rows: Row[] = [
    ...(members.data?.members ?? []).map((member) => ({
      userId: member.user_id,
      email: member.email,
      username: member.organization_username.username,
      isMember: true,
      ways: waysOf(sides, member, granted.get(member.user_id) ?? {}, here),
      account: accountText(accounts.get(member.user_id)),
    })),
    ...guests.map(([userId, email]) => ({
      userId,
      email,
      username: '',
      isMember: false,
      ways: waysOf(sides, { user_id: userId }, {}, here),
      account: '',
    })),
  ].filter(({ ways }) => ways.length > 0);
  return (
    <>
      <p className="sentence">
        {rows.length} {rows.length === 1 ? 'person has' : 'people have'} access
        {sides.slurm && `, ${accounts.size} of them over SSH`}.
      </p>
      <Panel
        title="Access list"
        tools={
          <AsCommand
            api="Business"
            cli="andromeda members grants"
            operation={`GET /organizations/${orgID}/clusters/${clusterId}/access`}
          />
        }
      >
        {sides.slurm && list.data && <ListStrip list={list.data} delivery={delivery} />}
        <p>
          Last report: <Reported clusterId={clusterId} at={delivery.observed_at} />
        </p>
        {delivery.failure !== undefined && (
          <p>
            <State kind="bad">Needs attention</State> {delivery.failure}
          </p>
        )}
      </Panel>
      <Panel
        title="People"
        tools={
          <button
            type="button"
            className="link small"
            onClick={() => exportRows(delivery.cluster_name, rows)}
          >
            Save as CSV
          </button>
        }
      >
        <Loaded of={members}>{() => <PeopleTable rows={rows} isSlurm={sides.slurm} />}</Loaded>
      </Panel>
    </>
  );
}

function accountText(state: 'ready' | 'waiting_for_key' | undefined): string {
  if (state === undefined) return '–';
  return state === 'ready' ? 'ready' : 'needs a key';
}

function ListStrip({ list, delivery }: { list: AccessList; delivery: Delivery }) {
  const { state, generation, updated_at: at } = list;
  const isAccepted = state !== 'pending' && state !== 'rejected';
  const isThere = state === 'converged';
  const steps: Step[] = [
    { name: `desired ${generation}`, state: 'done', at },
    { name: 'accepted', state: isAccepted ? 'done' : state === 'rejected' ? 'failed' : 'busy' },
    {
      name: 'applied',
      state: isThere ? 'done' : state === 'failed' ? 'failed' : isAccepted ? 'busy' : 'waiting',
    },
    {
      name: 'observed',
      state: isThere ? 'done' : state === 'stale' ? 'failed' : 'waiting',
    },
  ];
  const missing = {
    pending: 'The list has not been accepted yet.',
    rejected: 'The list was refused.',
    accepted: 'The next sync applies it.',
    failed: delivery.failure ?? 'The cluster could not apply it.',
    stale: 'The cluster has not reported recently, so its state is unknown.',
    converged: undefined,
  }[state];
  return <Strip of={`list/${delivery.cluster_id}/${generation}`} steps={steps} missing={missing} />;
}

function PeopleTable({ rows, isSlurm }: { rows: readonly Row[]; isSlurm: boolean }) {
  const { filter } = useSearch({ from: '/frame/clusters/$clusterId/people' });
  const navigate = useNavigate({ from: '/clusters/$clusterId/people' });
  return (
    <Table
      name="people"
      rows={rows}
      id={({ userId }) => userId}
      text={({ email, username, ways, account }) =>
        `${email} ${username} ${account} ${ways.map((way) => `${opensText[way.opens]} ${wayText(way)}`).join(' ')}`
      }
      filter={filter ?? ''}
      onFilter={(text) =>
        void navigate({
          search: ({ filter: _old, ...rest }) => (text === '' ? rest : { ...rest, filter: text }),
          replace: true,
        })
      }
      columns={[
        {
          name: 'Address',
          cell: ({ userId, email }) => (
            <Link to="/members/$userId" params={{ userId }}>
              {email}
            </Link>
          ),
        },
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

function exportRows(cluster: string, rows: readonly Row[]): void {
  const head = ['cluster', 'address', 'user name', 'opens', 'by', 'way', 'since', 'until'];
  const body = rows.flatMap(({ email, username, ways }) =>
    ways.map((way) => [
      cluster,
      email,
      username,
      way.opens,
      way.by,
      wayText(way),
      way.since,
      way.until ?? '',
    ]),
  );
  save('people-of-cluster.csv', 'text/csv', csv([head, ...body]));
}
