/** `andromeda clusters`. */

import { describeGpuUsage } from '../../domain/gpu-usage.ts';
import { type Answer, printer } from '../answer.ts';
import type { PlatformReader } from '../net/api.ts';
import type { Platform } from '../net/operations.ts';
import { formatTable } from '../table.ts';
import { type Noun, reads } from '../verb.ts';
import { type OrgOptions, orgFlag } from './caller.ts';
import { type Cluster, findCluster, listClusters, unless } from './cluster.ts';
import { describeCondition, formatBytes } from './describe.ts';

const table = printer<Cluster>(
  {
    NAME: (row) => row.name,
    STATE: (row) => row.platform?.status.lifecycleState,
    SCHEDULER: (row) => row.business?.selected_scheduler,
    NODES: (row) => row.business?.assigned_node_count,
    ORGANIZATION: (row) => row.organization.slug,
    SITE: (row) => row.platform?.spec.site.id,
    ID: (row) => row.id,
  },
  'There are no clusters that you can see.',
);

/** What the cluster last reported (contract, "Cluster options"). */
export function readOptions(
  platform: PlatformReader,
  { id, organization }: Pick<Cluster, 'id' | 'organization'>,
): Promise<Platform['ClusterOptions']> {
  const query = { businessOrgId: organization.id };
  return platform.get('/clusters/{clusterId}/options', { path: { clusterId: id }, query });
}

/** What of its GPUs is in use, as it last reported. */
export function readUsage(
  platform: PlatformReader,
  { id, organization }: Pick<Cluster, 'id' | 'organization'>,
): Promise<Platform['ClusterUsage']> {
  const query = { businessOrgId: organization.id };
  return platform.get('/clusters/{clusterId}/usage', { path: { clusterId: id }, query });
}

function details(
  cluster: Cluster,
  options: Platform['ClusterOptions'] | undefined,
  usage: Platform['ClusterUsage'] | undefined,
): string {
  const { platform, business, organization } = cluster;
  const scheduler = options?.scheduler;
  const storage = options?.storage;
  const types = Object.entries(storage?.configured ?? {}).filter(([, state]) => state === 'configured');
  const rows: [string, string | undefined][] = [
    ['Name', cluster.name],
    ['ID', cluster.id],
    ['Organization', organization.slug],
    ['Site', platform?.spec.site.name],
    ['State', platform?.status.lifecycleState],
    ['Reports', options && [options.state, options.reason].filter(Boolean).join(', ')],
    ['Observed', options?.observedAt],
    ['Scheduler', scheduler?.configured.value ?? business?.selected_scheduler],
    ['Scheduler ready', describeCondition(scheduler?.ready)],
    ['Storage', types.map(([type]) => type).join(',')],
    ['Storage quota', formatBytes(storage?.quotaBytes)],
    ['Storage ready', describeCondition(storage?.ready)],
    [
      'Nodes',
      business && `${business.assigned_node_count} of ${business.expected_node_count ?? 'any number'}`,
    ],
    ['GPUs', usage && describeUsage(usage)],
    ['Kubernetes', platform?.status.kubeletVersion || platform?.spec.version],
  ];
  // A table of names and values needs no heading.
  return formatTable(['', ''], rows).split('\n').slice(1).join('\n');
}

/** The sum, and the machines that take no work, with the reason. */
function describeUsage({ gpus, machines }: Platform['ClusterUsage']): string {
  const away = machines.filter(({ takes_work: takesWork }) => takesWork === false);
  const named = away.slice(0, mostNamed).map(({ name, reason }) => (reason ? `${name} (${reason})` : name));
  const more = away.length > mostNamed ? [`${away.length - mostNamed} more`] : [];
  const list = [...named, ...more].join(', ');
  return `${describeGpuUsage(gpus)}${list === '' ? '' : `; out of work: ${list}`}`;
}

const mostNamed = 5;

export const clusters: Noun = {
  name: 'clusters',
  summary: 'the clusters of your organizations',
  verbs: [
    reads<OrgOptions>({
      usage: 'list',
      summary: 'the clusters you can see',
      example: 'clusters list',
      flags: [orgFlag],
      async run({ api, platform, options }): Promise<Answer> {
        const { clusters: rows, hidden } = await listClusters({ api, platform }, options);
        const answer = table.many({ clusters: rows }, rows);
        if (hidden.length === 0) return answer;
        const slugs = hidden.map(({ slug }) => slug).join(', ');
        return {
          ...answer,
          message: `You may not list the clusters of ${slugs}, which takes clusters.read.`,
        };
      },
    }),
    reads<OrgOptions>({
      usage: 'show <cluster>',
      summary: 'one cluster: its state, its scheduler, its storage, its free GPUs',
      example: 'clusters show alpha',
      flags: [orgFlag],
      formats: ['text', 'json', 'yaml'],
      async run({ api, platform, options }, wanted = ''): Promise<Answer> {
        const cluster = await findCluster({ api, platform }, wanted, options);
        const reported = await unless(['forbidden'], readOptions(platform, cluster));
        const usage = await unless(['forbidden', 'notFound'], readUsage(platform, cluster));
        const json = { ...cluster, options: reported ?? null, usage: usage ?? null };
        return { json, text: details(cluster, reported, usage) };
      },
    }),
  ],
};
