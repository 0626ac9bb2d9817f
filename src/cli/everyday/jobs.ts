/** `andromeda jobs`, `gpus` and `gpu-hours`: jobs and GPU use of the clusters, as last reported. */
import { mostGpuDays } from '../../domain/clusters/gpu-hours.ts';
import { describeFreeBlocks, describeGpuUsage, mostUsagesAtOnce } from '../../domain/clusters/gpu-usage.ts';
import { usage } from '../exit.ts';
import type { Platform } from '../net/api.ts';
import { type Answer, csvText, printer } from '../output.ts';
import { optional, reads } from '../verb.ts';
import {
  type Apis,
  type Cluster,
  findCluster,
  findOrganizations,
  isInService,
  listClusters,
  type Organization,
  type OrgOptions,
  orgFlag,
  unless,
} from './caller.ts';

type Usage = Platform['ClusterUsage'];

interface UsedCluster {
  cluster: Cluster;
  usage: Usage;
}
type Pending = Platform['PendingJob'];

interface JobRow {
  cluster: string;
  job: Platform['Job'] | Pending;
}

interface FoundUsage {
  used: UsedCluster[];
  hidden: readonly Organization[];
}

async function readUsed(apis: Apis, wanted: string | undefined, options: OrgOptions): Promise<FoundUsage> {
  const { clusters, hidden } =
    wanted === undefined
      ? await listClusters(apis, options)
      : { clusters: [await findCluster(apis, wanted, options)], hidden: [] };
  const used: UsedCluster[] = [];
  const byOrganization = Map.groupBy(clusters.filter(isInService), ({ organization }) => organization.id);
  for (const [businessOrgId, own] of byOrganization) {
    for (let from = 0; from < own.length; from += mostUsagesAtOnce) {
      const ids = own.slice(from, from + mostUsagesAtOnce).map(({ id }) => id);
      const query = { businessOrgId, cluster_ids: ids.join(',') };
      const { items } = await apis.platform.get('/usage', { query });
      for (const usage of items) {
        const cluster = own.find(({ id }) => id === usage.cluster_id);
        if (cluster) used.push({ cluster, usage });
      }
    }
  }
  return { used, hidden };
}

function rowsOf({ cluster, usage: { jobs = [], pending_jobs: pending = [] } }: UsedCluster): JobRow[] {
  return [...jobs, ...pending].map((job) => ({ cluster: cluster.name, job }));
}

/** Sentences about the clusters whose jobs are unknown; empty when all are known. */
function unknownText({ used, hidden }: FoundUsage): string {
  const names = used.flatMap(({ cluster, usage }) =>
    usage.scheduler === 'sunk' && !usage.jobs ? [cluster.name] : [],
  );
  const slugs = hidden.map(({ slug }) => slug);
  const sentences = [
    names.length > 0 && `Which jobs run on ${names.join(', ')} is not known at the moment.`,
    slugs.length > 0 && `You may not list the clusters of ${slugs.join(', ')}, which takes clusters.read.`,
  ];
  return sentences.filter(Boolean).join(' ');
}

function hiddenText({ used }: FoundUsage): string | undefined {
  const others = used.flatMap(({ usage }) => usage.other_jobs ?? []);
  if (others.length === 0) return undefined;
  const sum = (key: 'jobs' | 'gpus' | 'pending') => others.reduce((total, one) => total + one[key], 0);
  const pending = sum('pending') === 0 ? '' : `, and ${sum('pending')} that wait`;
  return `Not shown: jobs of others (${sum('jobs')}, with GPUs: ${sum('gpus')}${pending}).`;
}

const jobTable = printer<JobRow>(
  {
    CLUSTER: ({ cluster }) => cluster,
    JOB: ({ job }) => job.id,
    NAME: ({ job }) => job.name,
    USER: ({ job }) => job.user,
    STATE: ({ job }) => ('machines' in job ? 'running' : `pending (${job.reason}), ${job.ahead} ahead`),
    NODES: ({ job }) => ('machines' in job ? job.machines.join(',') : undefined),
    GPUS: ({ job }) => job.gpus,
    // For a pending job, the start that Slurm expects.
    START: ({ job }) => ('machines' in job ? job.started_at : job.expected_at),
    END: ({ job }) => ('machines' in job ? job.ends_at : undefined),
  },
  'No such job is running or waiting.',
);

export const jobs = reads<OrgOptions & { all?: true }>({
  usage: 'jobs [cluster]',
  summary: 'your Slurm jobs; log in to one that runs with `andromeda ssh <cluster> --job <ID>`',
  example: 'jobs alpha --all',
  flags: [orgFlag, optional('--all', 'those of others too, as far as you may see them')],
  async run({ api, platform, options }, wanted): Promise<Answer> {
    const found = await readUsed({ api, platform }, wanted, options);
    const rows = found.used.flatMap(rowsOf).filter(({ job }) => options.all === true || job.mine);
    const json = { jobs: rows.map(({ cluster, job }) => ({ cluster, ...job })) };
    const answer = jobTable.many(json, rows);
    const said = [unknownText(found), options.all && hiddenText(found)].filter(Boolean).join(' ');
    return said === '' ? answer : { ...answer, message: said };
  },
});

const gpuTable = printer<UsedCluster>(
  {
    CLUSTER: ({ cluster }) => cluster.name,
    GPUS: ({ usage }) => usage.gpus.total,
    FREE: ({ usage }) => usage.gpus.free,
    'FREE-NODES': ({ usage }) => usage.gpus.free_nodes,
    'BIGGEST-BLOCK': ({ usage }) => usage.gpus.biggest_block,
    'IN-USE': ({ usage }) => usage.gpus.in_use,
    UNAVAILABLE: ({ usage }) => usage.gpus.away,
    UNKNOWN: ({ usage }) => usage.gpus.unknown,
    OBSERVED: ({ usage }) => usage.observed_at,
  },
  'There are no clusters.',
);

const podTable = printer<{ cluster: string; pod: Platform['GpuPod'] }>(
  {
    CLUSTER: ({ cluster }) => cluster,
    NAMESPACE: ({ pod }) => pod.namespace,
    POD: ({ pod }) => pod.name,
    NODE: ({ pod }) => pod.machine,
    GPUS: ({ pod }) => pod.gpus,
  },
  '',
);

function freeText({ gpus }: Usage): string {
  const { free_nodes: freeNodes, biggest_block: biggestBlock } = gpus;
  const blocks = describeFreeBlocks({ freeNodes, biggestBlock });
  return `${describeGpuUsage(gpus)}${blocks === undefined ? '' : `: ${blocks}`}.`;
}

export const gpus = reads<OrgOptions>({
  usage: 'gpus [cluster]',
  summary: 'free GPUs on every cluster, who holds the others, and who waits',
  example: 'gpus alpha',
  flags: [orgFlag],
  async run({ api, platform, options }, wanted): Promise<Answer> {
    const found = await readUsed({ api, platform }, wanted, options);
    const { used } = found;
    const holding = used.flatMap(rowsOf).filter(({ job }) => job.gpus > 0);
    const json = { clusters: used.map(({ usage }) => usage) };
    const pods = used.flatMap(({ cluster: { name: cluster }, usage }) =>
      (usage.pods ?? []).map((pod) => ({ cluster, pod })),
    );
    const tables = [
      gpuTable.many(json, used),
      ...(holding.length > 0 ? [jobTable.many(json, holding)] : []),
      ...(pods.length > 0 ? [podTable.many(json, pods)] : []),
    ];
    const [only] = used;
    const sentence = only && used.length === 1 ? freeText(only.usage) : undefined;
    const message = [sentence, unknownText(found), hiddenText(found)].filter(Boolean).join(' ');
    return { json, text: tables.map(({ text }) => text).join('\n\n'), ...(message !== '' && { message }) };
  },
});

type Hours = Platform['ClusterGpuHours'];

const hoursTable = printer<{ cluster: string; person: Hours['people'][number] }>(
  {
    CLUSTER: ({ cluster }) => cluster,
    USER: ({ person }) => person.user,
    PERSON: ({ person }) => person.person,
    'GPU-HOURS': ({ person }) => person.gpu_hours.toFixed(2),
  },
  'Nobody that you may see has used a GPU in that time.',
);

const limitTable = printer<{ cluster: string; limit: Hours['limits'][number] }>(
  {
    CLUSTER: ({ cluster }) => cluster,
    OF: ({ limit }) => limit.user ?? 'account',
    LIMIT: ({ limit }) => limit.name,
    VALUE: ({ limit }) => limit.value,
    'LAB-FILE': ({ limit }) => limit.lab_file,
  },
  '',
);

export const gpuHours = reads<OrgOptions & { days?: string; output?: string }>({
  usage: 'gpu-hours [cluster]',
  summary: "GPU-hours by person, from Slurm's accounting; as CSV with -o csv",
  example: 'gpu-hours alpha --days 7',
  flags: [orgFlag, optional('--days <count>', `of so many days, up to ${mostGpuDays} (default: 30)`)],
  formats: ['table', 'csv', 'json', 'yaml'],
  async run({ api, platform, options }, wanted) {
    const days = daysOf(options.days);
    const organizations = await findOrganizations(api, options);
    const answers = await Promise.all(
      organizations.map(({ id: businessOrgId }) =>
        unless(platform.get('/gpu-hours', { query: { businessOrgId, days } }), 'forbidden'),
      ),
    );
    const items = answers
      .flatMap((answer) => answer?.items ?? [])
      .filter(
        ({ cluster_id: id, cluster_name: name }) => wanted === undefined || [id, name].includes(wanted),
      );
    if (wanted !== undefined && items.length === 0)
      throw usage(`You see no Slurm cluster ${wanted}; \`andromeda clusters list\` shows which there are.`);
    const rows = items.flatMap(({ cluster_name: cluster, people }) =>
      people.map((person) => ({ cluster, person })),
    );
    if (options.output === 'csv') {
      const csv = rows.map(({ cluster, person: of }) => [cluster, of.user, of.person ?? '', of.gpu_hours]);
      return { json: items, text: csvText([['cluster', 'user', 'person', 'gpu_hours'], ...csv]) };
    }
    const limits = items.flatMap(({ cluster_name: cluster, limits }) =>
      limits.map((limit) => ({ cluster, limit })),
    );
    const text = [hoursTable.many(items, rows), limitTable.many(items, limits)]
      .map((one) => one.text)
      .filter(Boolean)
      .join('\n\n');
    return { json: { items }, text, message: messageOf(items, rows.length) };
  },
});

function daysOf(text = '30'): number {
  const days = Number(text);
  if (Number.isInteger(days) && days >= 1 && days <= mostGpuDays) return days;
  throw usage(`--days is a number from 1 to ${mostGpuDays}, not ${text}.`);
}

function messageOf(items: readonly Hours[], shown: number): string {
  const clusters = items.map(
    ({ cluster_name: name, gpu_hours: all, members_gpu_hours: members, source, first_day: since }) => {
      if (source === undefined) return `${name}: nothing is known yet.`;
      const from =
        source === 'slurmdbd' ? "by Slurm's accounting" : 'as observed, since its Slurm has no accounting';
      return `${name}: ${all.toFixed(2)}, of members ${members.toFixed(2)}, since ${since}, ${from}.`;
    },
  );
  return [shown === 0 ? 'Nobody that you may see has used a GPU in that time.' : '', ...clusters]
    .filter(Boolean)
    .join(' ');
}
