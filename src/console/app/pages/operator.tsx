/** For operators: problems, and the sync progress of each side of each cluster. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { components } from '../../../api/generated/business.ts';
import { directPeople } from '../../../domain/slurm/direct.ts';
import { Empty, Loaded, Page, Panel, said } from '../parts/page.tsx';
import { type Step, Strip } from '../parts/strip.tsx';
import { type Column, Table, Two } from '../parts/table.tsx';
import { Age, count, type Kind, Reported, State, span, Text, useNow } from '../parts/values.tsx';
import { type Problem, readOperatorClusters, readProblems } from '../reads.ts';

type Cluster = components['schemas']['OperatorCluster'];
type Side = components['schemas']['OperatorClusterSide'];
type ListState = NonNullable<Cluster['access_list']>;

interface SideRow {
  cluster: Cluster;
  side: Side;
  list: ListState | null;
}

/** Polls, because a retry that fails like the one before is not announced as a change. */
const refetchInterval = 30_000;

export default function OperatorPage() {
  const clusters = useQuery({ ...readOperatorClusters(), refetchInterval });
  const rows = (clusters.data?.clusters ?? []).flatMap(rowsOf);
  return (
    <Page title="Overview" isWide sentence={said(clusters, () => <Sentence rows={rows} />)}>
      <Problems />
      <Panel title="Clusters" cli="andromeda admin cluster list" operation="GET /operator/clusters">
        <SideTable of={clusters} rows={clusters.data && rows} />
      </Panel>
    </Page>
  );
}

/** Whether to show the time of the next try. */
function isTriedAgain({ side, cluster }: SideRow): boolean {
  return cluster.cluster.state !== 'released' && (side.failure !== null || side.state !== 'reported');
}

function rowsOf(cluster: Cluster): SideRow[] {
  return cluster.sides.map((side) => ({
    cluster,
    side,
    list: side.side === 'slurm' ? cluster.access_list : null,
  }));
}

function Sentence({ rows }: { rows: readonly SideRow[] }) {
  const clusters = [...Map.groupBy(rows, ({ cluster }) => cluster.cluster.id).values()];
  const of = (...kinds: Kind[]) =>
    clusters.filter((sides) => sides.some((row) => kinds.includes(stateOf(row).kind))).length;
  const [bad, moving] = [of('bad'), of('busy', 'warn')];
  const total = count(clusters.length, 'cluster');
  if (bad > 0) return <>{`${bad} of ${total} ${bad === 1 ? 'needs' : 'need'} attention.`}</>;
  if (moving > 0)
    return <>{`${moving} of ${total} ${moving === 1 ? 'is' : 'are'} updating or not reporting.`}</>;
  return <>{clusters.length === 1 ? '1 cluster, in sync.' : `${total}, all in sync.`}</>;
}

/** The first state that applies: states that need an operator come before those that only take time. */
function stateOf({ cluster: { cluster }, side, list }: SideRow): { kind: Kind; text: string } {
  if (cluster.state === 'released') return { kind: 'none', text: 'Released' };
  if (side.failure !== null || list?.state === 'failed') return { kind: 'bad', text: 'Needs attention' };
  if (side.state === 'unreachable') return { kind: 'bad', text: 'Unreachable' };
  if (side.state === 'stale') return { kind: 'warn', text: 'Not reporting' };
  if (cluster.state === 'releasing') return { kind: 'busy', text: 'Being released' };
  const isThere = side.state === 'reported' && (!list || list.state === 'converged');
  if (cluster.state !== 'active' || !isThere) return { kind: 'busy', text: 'Updating' };
  return { kind: 'good', text: 'In sync' };
}

/** The sync steps of a side. A side that stopped reporting counts as still having what it last applied. */
function stepsOf({ side, list }: SideRow): Step[] {
  // An unreachable side may still have its last state.
  const failed = side.failure !== null && side.state !== 'unreachable';
  const isBroken = failed && list?.state === 'converged';
  const isObserved = side.state === 'reported';
  const observed: Step = {
    name: 'observed',
    state: isObserved ? 'done' : side.state === 'unreported' ? 'waiting' : 'failed',
    at: side.observed_at ?? undefined,
  };
  if (!list) {
    const applied = failed ? 'failed' : side.state === 'unreported' ? 'busy' : 'done';
    return [{ name: 'desired', state: 'done' }, { name: 'applied', state: applied }, observed];
  }
  const isAccepted = list.accepted_generation >= list.generation;
  const isApplied = (list.applied_generation ?? 0) >= list.generation;
  return [
    { name: `desired ${list.generation}`, state: 'done', at: list.updated_at },
    { name: 'accepted', state: isAccepted ? 'done' : 'busy' },
    {
      name: 'applied',
      state: failed && !isBroken ? 'failed' : isApplied ? 'done' : isAccepted ? 'busy' : 'waiting',
    },
    isApplied || observed.state !== 'done' ? observed : { ...observed, state: 'waiting', at: undefined },
    // The list is in force, but another part of the side failed.
    ...(isBroken ? [{ name: 'working', state: 'failed' } as const] : []),
  ];
}

function missingOf({ side }: SideRow): string {
  if (side.failure !== null) return side.failure;
  if (side.state === 'unreported') return 'It has not reported yet.';
  if (side.state === 'unreachable') return 'The last attempt to look at it failed.';
  if (side.state === 'stale') return 'It has not reported recently, so its state is unknown.';
  return 'The next sync applies it.';
}

const columns: Column<SideRow>[] = [
  {
    name: 'Cluster',
    cell: ({ cluster }) => (
      <Two first={<b>{cluster.name}</b>} second={`${cluster.organization_slug} · ${cluster.site.name}`} />
    ),
  },
  {
    name: 'Scheduler',
    cell: ({ cluster, side }) => (
      <Two
        first={<div>{side.side === 'slurm' ? 'Slurm' : 'Kubernetes'}</div>}
        second={cluster.drivers.includes('simulated') && 'simulated'}
      />
    ),
  },
  { name: 'State', cell: (row) => <State kind={stateOf(row).kind}>{stateOf(row).text}</State> },
  { name: 'Progress', cell: (row) => <Progress of={row} /> },
  {
    name: 'Reported',
    cell: ({ cluster, side }) => (
      <Reported clusterId={cluster.cluster.id} at={side.observed_at ?? undefined} />
    ),
  },
  {
    name: 'Audit',
    cell: ({ cluster }) => (
      <Link to="/audit" search={{ cluster: cluster.cluster.id }}>
        Show entries
      </Link>
    ),
  },
];

function Progress({ of: row }: { of: SideRow }) {
  const { cluster, side } = row;
  return (
    <div className="progress">
      <Strip of={`side/${cluster.cluster.id}/${side.side}`} steps={stepsOf(row)} missing={missingOf(row)} />
      {row.list && cluster.direct && cluster.direct.people.length > 0 && (
        <p className="small soft">
          {`Log in directly until ${cluster.direct.until}: ${directPeople(cluster.direct).join(', ')}`}
        </p>
      )}
      {isTriedAgain(row) && side.next_try_at !== null && (
        <p className="small soft">
          Next try <NextTry at={side.next_try_at} />
          {side.failures > 1 && ` (${side.failures} failed in a row)`}
        </p>
      )}
    </div>
  );
}

function SideTable({ of, rows }: { of: UseQueryResult; rows: readonly SideRow[] | undefined }) {
  return (
    <Table
      of={of}
      name="clusters"
      rows={rows}
      id={({ cluster, side }) => `${cluster.cluster.id} ${side.side}`}
      text={(row) =>
        [row.cluster.name, row.cluster.organization_slug, row.cluster.site.name, row.side.side]
          .concat(stateOf(row).text, row.side.failure ?? '')
          .join(' ')
      }
      columns={columns}
      none={<Empty>No clusters yet. Add one with `andromeda admin cluster add`.</Empty>}
    />
  );
}

const areas: Record<Problem['area'], string> = {
  cluster: 'Cluster',
  gateway: 'Gateway',
  backup: 'Service',
  certificate: 'Certificate',
  disk: 'Disk',
  audit: 'Audit trail,',
  server: 'Server',
  identity: 'Sign-in:',
};

function Problems() {
  const problems = useQuery({ ...readProblems(), refetchInterval });
  return (
    <Panel title="Needs attention" cli="andromeda admin problems" operation="GET /operator/problems">
      <Loaded of={problems}>
        {({ problems: list }) =>
          list.length === 0 ? (
            <p>
              <State kind="good">Nothing</State>{' '}
              <span className="soft">
                as of <Age at={new Date(problems.dataUpdatedAt).toISOString()} />
              </span>
            </p>
          ) : (
            <ul className="problems">
              {list.map((one) => (
                <Item key={`${one.area} ${one.about} ${one.side} ${one.message}`} problem={one} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Item({ problem }: { problem: Problem }) {
  const { area, about, side, urgency, since, message, action, next_try_at: next } = problem;
  return (
    <li>
      <p>
        <State kind={urgency === 'now' ? 'bad' : 'warn'}>{urgency === 'now' ? 'Urgent' : 'Soon'}</State>{' '}
        <b>
          {areas[area]} {about}
          {side && `, ${side === 'slurm' ? 'Slurm' : 'Kubernetes'}`}
        </b>{' '}
        <span className="soft">
          {since === undefined ? (
            'began at an unknown time'
          ) : (
            <>
              began <Age at={since} />
            </>
          )}
          {next !== undefined && (
            <>
              , next try <NextTry at={next} />
            </>
          )}
        </span>
      </p>
      <p>
        <Text of={message} />
      </p>
      <p>
        <b>Do:</b> <Commands text={action} />
      </p>
    </li>
  );
}

/** A sentence with commands between backticks. */
function Commands({ text }: { text: string }) {
  return text.split('`').map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text stay where they are
    index % 2 === 1 ? <code key={index}>{part}</code> : <span key={index}>{part}</span>,
  );
}

function NextTry({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return <>{left <= 0 ? 'now' : `in ${span(left)}`}</>;
}
