/** The people with access to a cluster, the ways that give it, and the state of the access list. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { opensText, wayText } from '../../../domain/access/ways-in.ts';
import { Empty, Loaded, Page, Panel, said } from '../parts/page.tsx';
import { accounts, Until, WayIn } from '../parts/people/access-state.tsx';
import { SaveCsv } from '../parts/save.tsx';
import { Strip } from '../parts/strip.tsx';
import { type Column, PersonCell, RemoteTable } from '../parts/table.tsx';
import { count, LastReport, State, Text } from '../parts/values.tsx';
import {
  type AccessList,
  type Delivery,
  deliverySteps,
  type Reviewed,
  readAccessList,
  readAccessOf,
  useReview,
  type Way,
} from '../people.ts';
import { useWho } from '../reads.ts';

export default function ClusterPeoplePage() {
  const { orgID, me } = useWho();
  const { clusterId } = useParams({ from: '/frame/clusters/$clusterId/people' });
  // The reader's own access includes the cluster's delivery state, which this page needs.
  const own = useQuery(readAccessOf(orgID, [me.user.id]));
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
      <Loaded of={own}>
        {({ people }) => {
          const on = people[0]?.clusters.find((one) => one.cluster_id === clusterId);
          return delivery && on ? (
            <People delivery={delivery} isSlurm={on.slurm !== undefined} />
          ) : (
            <Empty action={<Link to="/clusters">Clusters</Link>}>
              Your organization has no such cluster in service.
            </Empty>
          );
        }}
      </Loaded>
    </Page>
  );
}

function People({ delivery, isSlurm }: { delivery: Delivery; isSlurm: boolean }) {
  const who = useWho();
  const { cluster_id: clusterId, failure } = delivery;
  const list = useQuery({ ...readAccessList(who, clusterId), enabled: isSlurm });
  const { review, remote, csv } = useReview(columns, { cluster: clusterId });
  return (
    <>
      {said(review, ({ counts }) => (
        <p className="sentence">
          {count(counts.people, 'person has', 'people have')} access
          {isSlurm && `, ${counts.ssh} of them over SSH`}.
        </p>
      ))}
      <Panel
        title="Access list"
        cli="andromeda members grants"
        operation={`GET /organizations/${who.orgID}/clusters/${clusterId}/access`}
      >
        {isSlurm && (
          <Loaded of={list}>{(known) => known && <ListStrip list={known} delivery={delivery} />}</Loaded>
        )}
        <LastReport clusterId={clusterId} at={delivery.observed_at} />
        {failure !== undefined && (
          <p>
            <State kind="bad">Needs attention</State> <Text of={failure} />
          </p>
        )}
      </Panel>
      <Panel
        title="People"
        tools={<SaveCsv name="people-of-cluster.csv" of={review} text={csv} />}
        operation={`GET /organizations/${who.orgID}/access-review?cluster=${clusterId}`}
      >
        <Loaded of={review}>
          {({ people, counts }) => (
            <RemoteTable
              name="people"
              rows={people}
              id={({ user_id: id }) => id}
              columns={columns.filter(({ name }) => isSlurm || name !== 'Slurm account')}
              remote={remote}
              all={counts.people}
            />
          )}
        </Loaded>
      </Panel>
    </>
  );
}

const states = {
  pending: ['pending', 'The list has not been accepted yet.'],
  accepted: ['pending', 'The next sync applies it.'],
  failed: ['failed', 'The cluster could not apply it.'],
  stale: ['unknown', 'The cluster has not reported recently, so its state is unknown.'],
  converged: ['there', undefined],
} as const;

function ListStrip({ list, delivery }: { list: AccessList; delivery: Delivery }) {
  const { generation, updated_at: at } = list;
  // The contract also has `rejected`, which the service never sets.
  const [state, usual] = states[list.state as keyof typeof states];
  const steps = deliverySteps({
    desired: { name: `desired ${generation}`, at },
    isAccepted: list.state !== 'pending',
    state,
  });
  const missing = state === 'failed' ? (delivery.failure ?? usual) : usual;
  return <Strip of={`list/${delivery.cluster_id}/${generation}`} steps={steps} missing={missing} />;
}

const columns: Column<Reviewed>[] = [
  { name: 'Person', sort: 'name', cell: (row) => <PersonCell of={row} /> },
  {
    name: 'User name',
    sort: 'username',
    cell: ({ username }) => username ?? <span className="soft">not a member</span>,
  },
  { name: 'Slurm account', sort: 'account', cell: ({ account }) => accounts[account ?? 'none'] },
  {
    name: 'Access',
    sort: 'opens',
    cell: ({ ways = [] }) => [...new Set(ways.map(({ opens }) => opensText[opens]))].join(', '),
  },
  { name: 'Through', sort: 'ways', cell: ({ ways = [] }) => [...new Set(ways.map(wayText))].join(', ') },
  { name: 'Until', sort: 'ends', cell: ({ ways = [] }) => <Ends ways={ways} /> },
];

/** The ends of ways: one by one where they differ, since the remaining ones give less access. */
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
