/** `andromeda gpu-hours`: who used how many GPUs for how long. */
import { mostGpuDays } from '../../domain/clusters/gpu-hours.ts';
import { csv } from '../../domain/text.ts';
import { printer } from '../answer.ts';
import { usage } from '../exit.ts';
import type { Platform } from '../net/operations.ts';
import { optional, reads } from '../verb.ts';
import { findOrganizations, type OrgOptions, orgFlag, unless } from './caller.ts';

type Hours = Platform['ClusterGpuHours'];

interface Row {
  cluster: string;
  person: Hours['people'][number];
}

const table = printer<Row>(
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

interface HoursOptions extends OrgOptions {
  days?: string;
  output?: string;
}

export const gpuHours = reads<HoursOptions>({
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
    if (options.output === 'csv')
      return { json: items, text: csvOf(rows).replaceAll('\r\n', '\n').trimEnd() };
    const limits = items.flatMap(({ cluster_name: cluster, limits }) =>
      limits.map((limit) => ({ cluster, limit })),
    );
    const text = [table.many(items, rows), limitTable.many(items, limits)]
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

function csvOf(rows: readonly Row[]): string {
  const cells = rows.map(({ cluster, person: { user, person = '', gpu_hours: hours } }) => [
    cluster,
    user,
    person,
    hours,
  ]);
  return csv([['cluster', 'user', 'person', 'gpu_hours'], ...cells]);
}

/** The sums, and where they are from. */
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
