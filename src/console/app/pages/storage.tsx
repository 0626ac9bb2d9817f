/** For operators: the storage of every cluster as configured and as purchased, and its health. */
import { useQueries, useQuery } from '@tanstack/react-query';
import type { components } from '../../../api/generated/platform.ts';
import { formatBytes } from '../../../domain/units.ts';
import { Ready } from '../parts/gpus.tsx';
import { allOf, Empty, Page, Panel, said, together } from '../parts/page.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { count, Reported } from '../parts/values.tsx';
import { readOperatorClusters, readStorage } from '../reads.ts';

type ClusterStorage = components['schemas']['StorageInventoryEntry'];

interface Volume {
  entry: ClusterStorage;
  volume: ClusterStorage['backends'][number];
}

const kinds = { ceph: 'Ceph', weka: 'WEKA', nfs: 'NFS' } as const;

export default function StoragePage() {
  const clusters = useQuery(readOperatorClusters());
  const owners = new Set(clusters.data?.clusters.map(({ cluster }) => cluster.organization_id));
  const stores = allOf(useQueries({ queries: [...owners].map(readStorage) }));
  const both = together({ clusters, stores });
  const entries = (stores.data ?? [])
    .flatMap(({ items }) => items)
    .filter(({ lifecycleState: state }) => state !== 'released');
  const volumes = entries.flatMap((entry) => entry.backends.map((volume): Volume => ({ entry, volume })));
  const shown = volumes.filter(
    ({ volume }) => volume.configured !== 'not_configured' || volume.purchasedRawBytes,
  );
  return (
    <Page title="Storage" isWide sentence={said(both, () => sentenceOf(entries, shown))}>
      <Panel title="Volumes">
        <Table
          name="volumes"
          of={both}
          rows={shown}
          id={({ entry, volume }) => `${entry.clusterId} ${volume.type}`}
          text={({ entry, volume }) => `${entry.clusterName} ${kinds[volume.type]}`}
          isInAddress
          columns={columns}
          none={<Empty>No cluster has storage.</Empty>}
        />
      </Panel>
    </Page>
  );
}

function sentenceOf(entries: readonly ClusterStorage[], volumes: readonly Volume[]): string {
  const bad = volumes.filter(({ volume }) => volume.ready?.status === 'False').length;
  const all = `${count(volumes.length, 'volume')} on ${count(entries.length, 'cluster')}`;
  return bad === 0 ? `${all}.` : `${all}, ${bad} of them not working.`;
}

const configured = { configured: 'Set up', not_configured: 'Not set up', unknown: 'Unknown' } as const;

const columns: Column<Volume>[] = [
  { name: 'Cluster', cell: ({ entry }) => <b>{entry.clusterName}</b> },
  { name: 'Volume', cell: ({ volume }) => kinds[volume.type] },
  { name: 'Configuration', cell: ({ volume }) => configured[volume.configured] },
  { name: 'State', cell: ({ volume }) => <Ready condition={volume.ready} /> },
  { name: 'Quota', isNumber: true, cell: ({ volume }) => bytes(volume.configuredQuotaBytes) },
  { name: 'Purchased', isNumber: true, cell: ({ volume }) => bytes(volume.purchasedRawBytes) },
  {
    name: 'Reported',
    cell: ({ entry }) => <Reported clusterId={entry.clusterId} at={entry.observedAt} />,
  },
];

function bytes(of: number | undefined): string {
  return of === undefined ? '–' : formatBytes(of);
}
