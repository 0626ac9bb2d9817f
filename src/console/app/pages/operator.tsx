/** For operators: is everything converged, and what must I mend. */
import { useQuery } from '@tanstack/react-query';
import type { components } from '../../../api/business.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Loaded, Page, Panel } from '../parts/page.tsx';
import { type Kind, State } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Reported } from '../parts/time.tsx';
import { readOperatorClusters } from '../reads.ts';

type Cluster = components['schemas']['OperatorCluster'];

function stateOf({ cluster, access_list: list, failure }: Cluster): { kind: Kind; text: string } {
  if (cluster.state === 'released') return { kind: 'none', text: 'Released' };
  if (failure !== null) return { kind: 'bad', text: 'Needs you' };
  if (list && ['failed', 'rejected'].includes(list.state)) return { kind: 'bad', text: list.state };
  if (list?.state === 'stale') return { kind: 'warn', text: 'Stale' };
  if (cluster.state !== 'active' || (list && list.state !== 'converged'))
    return { kind: 'busy', text: 'On its way' };
  return { kind: 'good', text: 'Converged' };
}

export function OperatorPage() {
  const clusters = useQuery(readOperatorClusters());
  const list = clusters.data?.clusters ?? [];
  const bad = list.filter((one) => stateOf(one).kind === 'bad');
  const busy = list.filter((one) => ['busy', 'warn'].includes(stateOf(one).kind));
  return (
    <Page
      title="Installation"
      isWide
      sentence={
        clusters.data &&
        (bad.length > 0
          ? `${bad.length} of ${list.length} clusters need you.`
          : busy.length > 0
            ? `${busy.length} of ${list.length} clusters are on their way; nothing needs you.`
            : `All ${list.length} clusters have what they should have.`)
      }
    >
      <Panel
        title="Clusters"
        tools={
          <AsCommand api="Business" cli="andromeda admin cluster list" operation="GET /operator/clusters" />
        }
      >
        <Loaded of={clusters}>{() => <ClusterTable clusters={list} />}</Loaded>
      </Panel>
    </Page>
  );
}

function ClusterTable({ clusters }: { clusters: readonly Cluster[] }) {
  return (
    <Table
      name="clusters"
      rows={clusters}
      id={({ cluster }) => cluster.id}
      text={({ name, organization_slug: slug, site, failure }) =>
        `${name} ${slug} ${site.name} ${failure ?? ''}`
      }
      columns={[
        { name: 'Cluster', cell: ({ name }) => name },
        { name: 'Organization', cell: (one) => one.organization_slug },
        {
          name: 'State',
          cell: (one) => {
            const { kind, text } = stateOf(one);
            return <State kind={kind}>{text}</State>;
          },
        },
        { name: 'Drivers', cell: ({ drivers }) => drivers.join(', ') || 'none' },
        { name: 'List', isNumber: true, cell: (one) => one.access_list?.generation ?? '–' },
        {
          name: 'Reported',
          cell: ({ cluster, observed_at: at }) => <Reported clusterId={cluster.id} at={at ?? undefined} />,
        },
        { name: 'What to mend', cell: ({ failure }) => failure ?? <span className="soft">nothing</span> },
      ]}
    />
  );
}
