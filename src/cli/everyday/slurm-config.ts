/** `andromeda slurm-config`: the Slurm configuration of a cluster as YAML, or the default of an organization's new clusters. */
import { isDeepStrictEqual } from 'node:util';
import { confirm, isAttended } from '../ask.ts';
import { failure, usage } from '../exit.ts';
import { readYaml } from '../files.ts';
import type { PlatformApi, Platform as Schemas } from '../net/api.ts';
import { type Answer, listed, printer, printMessage } from '../output.ts';
import { type Noun, optional, reads, required, writes, yesFlag } from '../verb.ts';
import { type Apis, findCluster, findOrganization, named, type OrgOptions, orgFlag } from './caller.ts';

type Configuration = Record<string, unknown>;

interface ConfigOptions extends OrgOptions {
  default?: true;
  yes?: true;
}

const base = '/clusters/{clusterId}/scheduler-configuration';
const ofOrganization = '/organizations/{orgId}/scheduler-configuration';

const formats = ['text', 'json', 'yaml'];
const fileFlag = required('-f, --file <file>', 'the configuration (YAML), - for standard input');
const targetFlags = [orgFlag, optional('--default', 'what new clusters of the organization start with')];

function partOf({ field, file }: { field?: string; file?: string }): string {
  return file === undefined ? (field ?? '') : `${field}/${file}`;
}

function moreOf({ changes, changeCount }: { changes: readonly unknown[]; changeCount: number }): string {
  return changeCount > changes.length ? ` and ${changeCount - changes.length} more` : '';
}

function consequencesOf(check: Schemas['SlurmConfigurationCheck']): string[] {
  const { changes, hasSlurm, restarts, rollout, openSessions, endedJobs, removedPartitions } = check;
  if (changes.length === 0) return ['It is what stands already: nothing would change.'];
  const live = 'slurmctld restarts, and slurmd on one node after the other; sessions and jobs go on.';
  const restarted = rollout === 'live' ? live : `Restarts: ${restarts.join(', ')}.`;
  const sentences = [
    `Changes: ${changes.map((one) => `${partOf(one)} (${one.change})`).join(', ')}${moreOf(check)}.`,
    hasSlurm ? restarted : 'Restarts: nothing, for the cluster has no Slurm.',
    openSessions > 0 && `SSH sessions that end: ${openSessions}.`,
    endedJobs === undefined &&
      'Jobs may end, as compute nodes restart: which run is not known at the moment.',
    (endedJobs ?? 0) > 0 && `Jobs that end, as compute nodes restart: ${endedJobs}.`,
    removedPartitions.length > 0 &&
      `Partitions that go, with the jobs in them: ${removedPartitions.join(', ')}.`,
  ];
  return sentences.filter((sentence) => sentence !== false);
}

const stateSentences: Record<Schemas['SlurmConfigurationStatus']['state'], string> = {
  never_written: 'No configuration was ever set.',
  saved: 'It is saved, and not passed on to the cluster yet.',
  applying: 'The cluster tries it out.',
  in_force: 'It is in force.',
  refused:
    'The cluster tried it and did not take it; what was there before stays. Setting the same again tries it again.',
  failed: 'It could not be applied; it is tried again.',
  unknown: 'The cluster has not reported lately.',
  no_slurm: 'It is kept, but the cluster has no Slurm that would take it up.',
  not_in_service: 'The cluster is not in service.',
};

const versions = printer<Schemas['SlurmConfigurationVersion']>(
  {
    NUMBER: ({ generation }) => generation,
    SET: ({ createdAt }) => createdAt,
    BY: ({ author }) => author.email,
    CHANGED: (one) => `${listed(one.changes.map(partOf))}${moreOf(one)}`,
    REASON: ({ reason }) => reason,
  },
  'No configuration was ever set.',
);

interface Target {
  read(): Promise<Configuration>;
  replace(platform: PlatformApi, after: Configuration, about: string): Promise<Configuration>;
  name: string;
  isDefault: boolean;
}

async function findTarget(
  { api, platform }: Apis,
  wanted: string | undefined,
  options: ConfigOptions,
): Promise<Target> {
  if ((wanted === undefined) === (options.default === undefined))
    throw usage('Name a cluster, or give --default for what new clusters start with.');
  if (wanted === undefined) {
    const { id, slug } = await findOrganization(api, options);
    const path = { orgId: id };
    return {
      read: () => platform.get(ofOrganization, { path }),
      replace: (to, body, about) => to.put(ofOrganization, { path, body, about }),
      name: `new clusters of ${slug}`,
      isDefault: true,
    };
  }
  const cluster = await findCluster({ api, platform }, wanted, options);
  return {
    read: () => platform.get(base, named(cluster)),
    replace: (to, body, about) => to.put(base, { ...named(cluster), body, about }),
    name: cluster.name,
    isDefault: false,
  };
}

async function readVersion(
  apis: Apis,
  wanted: string,
  number: string,
  options: OrgOptions,
): Promise<Configuration> {
  if (!/^\d{1,15}$/.test(number)) throw usage(`'${number}' is not the number of a configuration.`);
  const { path, query } = named(await findCluster(apis, wanted, options));
  return apis.platform.get(`${base}/versions/{generation}`, { path: { ...path, generation: number }, query });
}

/** Asks for confirmation, because applying a configuration closes sessions, and can end jobs. */
async function confirmReplacement(
  target: Target,
  before: Configuration,
  after: Configuration,
): Promise<void> {
  if (target.isDefault || !isAttended()) return;
  printMessage(`This closes the SSH sessions that are open on ${target.name}.`);
  if (!isDeepStrictEqual(before.computeS6Packages, after.computeS6Packages))
    printMessage(
      'It restarts every compute node, and jobs that run there end: computeS6Packages is another.',
    );
  await confirm('Go on?');
}

async function replace(
  platform: PlatformApi,
  target: Target,
  { before, after, about }: { before: Configuration; after: Configuration; about: string },
  { yes }: ConfigOptions,
): Promise<Answer> {
  if (isDeepStrictEqual(before, after)) return { json: before, text: '', message: 'Nothing to change.' };
  if (!yes) await confirmReplacement(target, before, after);
  const json = await target.replace(platform, after, about);
  return { json, text: '', message: `The Slurm configuration of ${target.name} is set.` };
}

const check = reads<OrgOptions & { file: string }>({
  usage: 'check <cluster>',
  summary: 'say what a configuration would change and restart, and which rules it breaks; changes nothing',
  example: 'slurm-config check alpha -f slurm.yaml',
  flags: [fileFlag, orgFlag],
  formats,
  async run({ api, platform, options }, wanted = '') {
    const body = await readYaml(options.file);
    const cluster = named(await findCluster({ api, platform }, wanted, options));
    const json = await platform.ask(`${base}/check`, { ...cluster, body, about: options.file });
    if (json.faults.length > 0)
      throw failure(`${options.file}: ${json.faults.map(({ message }) => message).join(' ')}`);
    return { json, text: consequencesOf(json).join('\n') };
  },
});

const status = reads<OrgOptions>({
  usage: 'status <cluster>',
  summary: 'say how far the configuration has come on the cluster',
  example: 'slurm-config status alpha',
  flags: [orgFlag],
  formats,
  async run({ api, platform, options }, wanted = '') {
    const cluster = named(await findCluster({ api, platform }, wanted, options));
    const json = await platform.get(`${base}/status`, cluster);
    const { generation, state, inForceGeneration, message } = json;
    const isOther = inForceGeneration !== undefined && state !== 'in_force';
    const lines = [
      `Number ${generation}. ${stateSentences[state]}`,
      message,
      isOther ? `In force on the cluster: number ${inForceGeneration}.` : undefined,
    ];
    return { json, text: lines.filter((line) => line !== undefined).join('\n') };
  },
});

const history = reads<OrgOptions>({
  usage: 'history <cluster>',
  summary: 'list the configurations that a cluster was given: who set each, when and why',
  example: 'slurm-config history alpha',
  flags: [orgFlag],
  async run({ api, platform, options }, wanted = '') {
    const cluster = named(await findCluster({ api, platform }, wanted, options));
    const json = await platform.get(`${base}/versions`, cluster);
    return versions.many(json, json.items);
  },
});

export const slurmConfig: Noun = {
  name: 'slurm-config',
  summary: 'the Slurm configuration of your clusters',
  verbs: [
    reads<ConfigOptions & { number?: string }>({
      usage: 'get [cluster]',
      summary: 'print a Slurm configuration as YAML, which set takes',
      example: 'slurm-config get alpha > slurm.yaml',
      flags: [
        ...targetFlags,
        optional('--number <number>', 'one of the history in place of the one that stands'),
      ],
      formats: ['yaml', 'json'],
      async run({ api, platform, options }, wanted): Promise<Answer> {
        if (options.number !== undefined) {
          if (wanted === undefined || options.default)
            throw usage('--number is of the history of a cluster.');
          return { json: await readVersion({ api, platform }, wanted, options.number, options), text: '' };
        }
        const target = await findTarget({ api, platform }, wanted, options);
        return { json: await target.read(), text: '' };
      },
    }),
    writes<ConfigOptions & { file: string }>({
      usage: 'set [cluster]',
      summary: 'replace a whole Slurm configuration; what the file leaves out is cleared',
      example: 'slurm-config set alpha -f slurm.yaml',
      flags: [fileFlag, ...targetFlags, yesFlag],
      formats,
      async run({ api, platform, options }, wanted): Promise<Answer> {
        const after = await readYaml(options.file);
        const target = await findTarget({ api, platform }, wanted, options);
        const before = await target.read();
        if (!target.isDefault && isDeepStrictEqual(before, after)) {
          const json = await target.replace(platform, after, options.file);
          const message = 'It stands already. Where the cluster refused it, it is tried again.';
          return { json, text: '', message };
        }
        return replace(platform, target, { before, after, about: options.file }, options);
      },
    }),
    writes<ConfigOptions>({
      usage: 'restore <cluster> <number>',
      summary: 'set a configuration of the history again',
      example: "slurm-config restore alpha 5 --reason 'number 6 was a mistake'",
      flags: [orgFlag, yesFlag],
      formats,
      async run({ api, platform, options }, wanted = '', number = ''): Promise<Answer> {
        const after = await readVersion({ api, platform }, wanted, number, options);
        const target = await findTarget({ api, platform }, wanted, options);
        const before = await target.read();
        return replace(platform, target, { before, after, about: `number ${number}` }, options);
      },
    }),
    check,
    status,
    history,
  ],
};
