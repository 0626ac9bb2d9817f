/** `andromeda clusters`, `machines`, `storage`, and `teams`, which are groups on clusters. */
import { describeGpuUsage } from '../../domain/clusters/gpu-usage.ts';
import { formatBytes } from '../../domain/units.ts';
import { type Business, type Platform, readPages } from '../net/api.ts';
import { type Answer, type Cell, formatPairs, listed, printer } from '../output.ts';
import { type Noun, reads, writes } from '../verb.ts';
import {
  type Cluster,
  findCluster,
  findMember,
  findOrganization,
  findOrganizations,
  listClusters,
  named,
  type OrgOptions,
  orgFlag,
  orgPath,
  unless,
} from './caller.ts';

const answers: Record<string, string> = { True: 'yes', False: 'no', Unknown: 'unknown' };

export function describeCondition(condition: Platform['Condition'] | undefined): string | undefined {
  if (!condition) return undefined;
  const { status, reason, message } = condition;
  const answer = answers[status] ?? status;
  const why = [reason, message].filter(Boolean).join(': ');
  return status === 'True' || why === '' ? answer : `${answer}, ${why}`;
}

/** A size such as `100GiB` or `1.5TiB`, without a space, so that a row can be split at spaces. */
function sizeText(bytes: number | undefined): string | undefined {
  return bytes === undefined ? undefined : formatBytes(bytes).replace(' ', '');
}

type StorageEntry = Platform['StorageInventoryEntry'];
type Backend = StorageEntry['backends'][number];

const storageTable = printer<{ entry: StorageEntry; backend?: Backend }>(
  {
    CLUSTER: ({ entry }) => entry.clusterName,
    STATE: ({ entry }) => entry.state,
    TYPE: ({ backend }) => backend?.type,
    CONFIGURED: ({ backend }) => backend?.configured,
    QUOTA: ({ backend }) => sizeText(backend?.configuredQuotaBytes),
    PURCHASED: ({ backend }) => sizeText(backend?.purchasedRawBytes),
    READY: ({ backend }) => describeCondition(backend?.ready),
  },
  'There are no clusters.',
);

export const storage = reads<OrgOptions>({
  usage: 'storage',
  summary: 'the storage of every cluster of your organizations',
  example: 'storage --org physics',
  flags: [orgFlag],
  async run({ api, platform, options }) {
    const organizations = await findOrganizations(api, options);
    // Of several organizations, those that refuse access to their storage are left out.
    const passing = organizations.length > 1 ? (['forbidden'] as const) : [];
    const lists = await Promise.all(
      organizations.map(({ id }) =>
        unless(platform.get('/organizations/{orgId}/storage', { path: { orgId: id } }), ...passing),
      ),
    );
    const items = lists.flatMap((list) => list?.items ?? []);
    return storageTable.many({ items }, items.flatMap(rowsOf));
  },
});

/** One row for each configured backend; one row without a backend if there is none. */
function rowsOf(entry: StorageEntry): { entry: StorageEntry; backend?: Backend }[] {
  const backends = entry.backends.filter(({ configured }) => configured !== 'not_configured');
  return backends.length === 0 ? [{ entry }] : backends.map((backend) => ({ entry, backend }));
}

export const machines = reads<OrgOptions>({
  usage: 'machines <cluster>',
  summary: 'the machines of a cluster',
  example: 'machines alpha',
  flags: [orgFlag],
  async run({ api, platform, options }, wanted = '') {
    const cluster = named(await findCluster({ api, platform }, wanted, options));
    const { path, query } = cluster;
    const items = await readPages(
      (after) =>
        platform.get('/clusters/{clusterId}/machines', { path, query: { ...query, limit: 200, after } }),
      (page) => ({ items: page.items, next: page.next_page_token }),
    );
    if (items.length === 0) {
      // Unreadable nodes are unknown, which is not the same as no nodes: the cluster's own message explains it.
      const reported = platform.get('/clusters/{clusterId}/options', cluster);
      const why = (await unless(reported, 'notFound', 'forbidden'))?.scheduler?.ready?.message;
      const answer = machineTable.many({ items }, []);
      if (why === undefined) return answer;
      return { ...answer, message: `No machines are known; the cluster reports: ${why}` };
    }
    const { machines, gpus } = await platform.get('/clusters/{clusterId}/usage', cluster);
    const useOf = new Map(machines.map(({ id, gpus_in_use, reason }) => [id, { gpus_in_use, reason }]));
    const rows = items.map((machine) => ({ ...row(machine), ...useOf.get(machine.id) }));
    return { ...machineTable.many({ items, gpus }, rows), message: `${describeGpuUsage(gpus)}.` };
  },
});

function row({ hardware, observed, ...machine }: Platform['Machine']): MachineRow {
  if (!observed) return { ...machine, ...hardware };
  const { ready, phase, freshness } = observed;
  return { ...machine, ...hardware, ...(freshness === 'fresh' ? { ready, phase } : { phase: freshness }) };
}

/** The operator's view has every column; a member's machine is converted to it. */
type MachineRow = { [Name in keyof Business['OperatorMachine']]?: Cell };

export const machineTable = printer<MachineRow>(
  {
    NAME: (row) => row.name,
    STATE: (row) => row.lifecycle_state,
    READY: (row) => (row.stale ? undefined : row.ready),
    PHASE: (row) => (row.stale ? 'stale' : row.phase),
    GPUS: (row) => row.gpu_count,
    'IN-USE': (row) => (row.stale ? undefined : row.gpus_in_use),
    MODEL: (row) => row.gpu_model,
    CORES: (row) => row.cpu_cores,
    'MEMORY-GIB': (row) => row.memory_gib,
    REASON: (row) => (row.stale ? undefined : row.reason),
    ID: (row) => row.id,
  },
  'There are no machines on this cluster.',
);

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

function details(
  cluster: Cluster,
  options: Platform['ClusterOptions'] | undefined,
  usage: Platform['ClusterUsage'] | undefined,
): string {
  const { platform, business, organization } = cluster;
  const scheduler = options?.scheduler;
  const storage = options?.storage;
  const types = Object.entries(storage?.configured ?? {}).filter(([, state]) => state === 'configured');
  return formatPairs([
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
    ['Storage quota', sizeText(storage?.quotaBytes)],
    ['Storage ready', describeCondition(storage?.ready)],
    [
      'Nodes',
      business && `${business.assigned_node_count} of ${business.expected_node_count ?? 'any number'}`,
    ],
    ['GPUs', usage && describeUsage(usage)],
    ['Kubernetes', platform?.status.kubeletVersion || platform?.spec.version],
  ]);
}

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
        const reported = await unless(
          platform.get('/clusters/{clusterId}/options', named(cluster)),
          'forbidden',
        );
        const used = platform.get('/clusters/{clusterId}/usage', named(cluster));
        const usage = await unless(used, 'forbidden', 'notFound');
        const json = { ...cluster, options: reported ?? null, usage: usage ?? null };
        return { json, text: details(cluster, reported, usage) };
      },
    }),
  ],
};

const teamTable = printer<Business['Team']>(
  {
    TEAM: (row) => row.name,
    GID: (row) => `${row.gid}`,
    MEMBERS: (row) => (row.everyone ? 'everyone' : listed(row.members.map(({ email }) => email))),
  },
  'There are no teams.',
);

export const teams: Noun = {
  name: 'teams',
  summary: 'groups on the Slurm clusters, for files that several people share',
  verbs: [
    reads<OrgOptions>({
      usage: 'list',
      summary: 'the teams of your organization, with their members',
      flags: [orgFlag],
      async run({ api, options }) {
        const json = await api.get('/organizations/{orgID}/teams', { path: await orgPath(api, options) });
        return teamTable.many(json, json.teams);
      },
    }),
    writes<OrgOptions>({
      usage: 'set <team> [emails...]',
      summary: 'make a team of these members, or have an existing one consist of them, as an owner may',
      example: 'teams set vision ada@physics.example bob@physics.example',
      flags: [orgFlag],
      async run({ api, options }, team = '', ...emails) {
        const organization = await findOrganization(api, options);
        const members: string[] = [];
        for (const email of emails) members.push((await findMember(api, organization, email)).user_id);
        const path = { orgID: organization.id, team };
        return teamTable.one(
          await api.put('/organizations/{orgID}/teams/{team}', { path, body: { members } }),
        );
      },
    }),
    writes<OrgOptions>({
      usage: 'remove <team>',
      summary: 'end a team; files keep its number, which no other team gets',
      example: "teams remove vision --reason 'the project is over'",
      flags: [orgFlag],
      async run({ api, options }, team = '') {
        const path = { ...(await orgPath(api, options)), team };
        const json = await api.post('/organizations/{orgID}/teams/{team}/remove', { path });
        return { json, text: '', message: `${team} is no team any more.` };
      },
    }),
  ],
};
