/** `andromeda slurm-config`: a cluster's Slurm configuration as YAML, or the one that new clusters start with. */
import { isDeepStrictEqual } from 'node:util';
import { type Answer, listed, printer } from '../answer.ts';
import { confirm, isAttended } from '../ask.ts';
import { failure, usage } from '../exit.ts';
import type { Platform, PlatformReader, Reader } from '../net/api.ts';
import type { Platform as Schemas } from '../net/operations.ts';
import { printMessage } from '../output.ts';
import { type Noun, optional, reads, required, writes } from '../verb.ts';
import { formatYaml, parseYaml, readYaml } from '../yaml-file.ts';
import { findCluster, findOrganization, type OrgOptions, orgFlag } from './caller.ts';

type Check = Schemas['SlurmConfigurationCheck'];
type Status = Schemas['SlurmConfigurationStatus'];

interface Apis {
  api: Reader;
  platform: PlatformReader;
}

const base = '/clusters/{clusterId}/scheduler-configuration';

/** What names a cluster's configuration in a call, and the cluster's name. */
async function findConfigured(apis: Apis, wanted: string, options: OrgOptions) {
  const { id, name, organization } = await findCluster(apis, wanted, options);
  return { name, given: { path: { clusterId: id }, query: { businessOrgId: organization.id } } };
}

function partOf({ field, file }: { field?: string; file?: string }): string {
  return file === undefined ? (field ?? '') : `${field}/${file}`;
}

/** What the API cut off. */
function moreOf({ changes, changeCount }: { changes: readonly unknown[]; changeCount: number }): string {
  return changeCount > changes.length ? ` and ${changeCount - changes.length} more` : '';
}

/** What setting it does, in sentences. */
function consequencesOf(check: Check): string[] {
  const { changes, hasSlurm, restarts, rollout, openSessions, endedJobs, removedPartitions } = check;
  if (changes.length === 0) return ['It is what stands already: nothing would change.'];
  const live = 'slurmctld restarts, and slurmd on one node after the other; sessions and jobs go on.';
  return [
    `Changes: ${changes.map((one) => `${partOf(one)} (${one.change})`).join(', ')}${moreOf(check)}.`,
    hasSlurm
      ? rollout === 'live'
        ? live
        : `Restarts: ${restarts.join(', ')}.`
      : 'Restarts: nothing, for the cluster has no Slurm.',
    ...(openSessions > 0 ? [`SSH sessions that end: ${openSessions}.`] : []),
    ...(endedJobs > 0 ? [`Jobs that end, as compute nodes restart: ${endedJobs}.`] : []),
    ...(removedPartitions.length > 0
      ? [`Partitions that go, with the jobs in them: ${removedPartitions.join(', ')}.`]
      : []),
  ];
}

const stateSentences: Record<Status['state'], string> = {
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

const historyVerbs = [
  reads<OrgOptions & { file: string }>({
    usage: 'check <cluster>',
    summary: 'say what a configuration would change and restart, and which rules it breaks; changes nothing',
    example: 'slurm-config check alpha -f slurm.yaml',
    flags: [required('-f, --file <file>', 'the configuration (YAML), - for standard input'), orgFlag],
    formats: ['text', 'json', 'yaml'],
    async run({ api, platform, options }, wanted = ''): Promise<Answer> {
      const body = await readYaml(options.file);
      const { given } = await findConfigured({ api, platform }, wanted, options);
      const json = await platform.ask(`${base}/check`, { ...given, body, about: options.file });
      if (json.faults.length > 0) {
        const sentences = json.faults.map(({ message }) => message);
        throw failure(`${options.file}: ${sentences.join(' ')}`);
      }
      return { json, text: consequencesOf(json).join('\n') };
    },
  }),
  reads<OrgOptions>({
    usage: 'status <cluster>',
    summary: 'say how far the configuration has come on the cluster',
    example: 'slurm-config status alpha',
    flags: [orgFlag],
    formats: ['text', 'json', 'yaml'],
    async run({ api, platform, options }, wanted = ''): Promise<Answer> {
      const { given } = await findConfigured({ api, platform }, wanted, options);
      const json = await platform.get(`${base}/status`, given);
      const { generation, state, inForceGeneration, message } = json;
      const lines = [
        `Number ${generation}. ${stateSentences[state]}`,
        ...(message === undefined ? [] : [message]),
        ...(inForceGeneration === undefined || state === 'in_force'
          ? []
          : [`In force on the cluster: number ${inForceGeneration}.`]),
      ];
      return { json, text: lines.join('\n') };
    },
  }),
  reads<OrgOptions>({
    usage: 'history <cluster>',
    summary: 'list the configurations that a cluster was given: who set each, when and why',
    example: 'slurm-config history alpha',
    flags: [orgFlag],
    async run({ api, platform, options }, wanted = ''): Promise<Answer> {
      const { given } = await findConfigured({ api, platform }, wanted, options);
      const json = await platform.get(`${base}/versions`, given);
      return versions.many(json, json.items);
    },
  }),
];

const numberFlag = optional('--number <number>', 'one of the history in place of the one that stands');

type Configuration = Record<string, unknown>;

interface Options extends OrgOptions {
  default?: true;
  yes?: true;
}

/** Whose configuration it is. */
interface Target {
  read(): Promise<Configuration>;
  /** `about` is where the new one comes from. */
  replace(platform: Platform, after: Configuration, about: string): Promise<Configuration>;
  /** As a sentence calls it. */
  name: string;
  isDefault: boolean;
}

const flags = [orgFlag, optional('--default', 'what new clusters of the organization start with')];
const yesFlag = optional('--yes', 'without asking');
const formats = ['text', 'json', 'yaml'];

const ofOrganization = '/organizations/{orgId}/scheduler-configuration';

async function findTarget(
  { api, platform }: { api: Reader; platform: PlatformReader },
  wanted: string | undefined,
  options: Options,
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
  const { id, name, organization } = await findCluster({ api, platform }, wanted, options);
  const given = { path: { clusterId: id }, query: { businessOrgId: organization.id } };
  return {
    read: () => platform.get(base, given),
    replace: (to, body, about) => to.put(base, { ...given, body, about }),
    name,
    isDefault: false,
  };
}

async function readVersion(
  apis: { api: Reader; platform: PlatformReader },
  wanted: string,
  number: string,
  options: OrgOptions,
): Promise<Configuration> {
  if (!/^\d{1,15}$/.test(number)) throw usage(`'${number}' is not the number of a configuration.`);
  const { given } = await findConfigured(apis, wanted, options);
  const path = { ...given.path, generation: number };
  return apis.platform.get(`${base}/versions/{generation}`, { ...given, path });
}

/** Applying a configuration closes sessions, and can end jobs: that has to be meant. */
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
  platform: Platform,
  target: Target,
  { before, after, about, yes }: { before: Configuration; after: Configuration; about: string; yes: boolean },
): Promise<Answer> {
  if (isDeepStrictEqual(before, after)) return { json: before, text: '', message: 'Nothing to change.' };
  if (!yes) await confirmReplacement(target, before, after);
  const json = await target.replace(platform, after, about);
  return { json, text: '', message: `The Slurm configuration of ${target.name} is set.` };
}

export const slurmConfig: Noun = {
  name: 'slurm-config',
  summary: 'the Slurm configuration of your clusters',
  verbs: [
    reads<Options & { number?: string }>({
      usage: 'get [cluster]',
      summary: 'print a Slurm configuration as YAML, which set takes',
      example: 'slurm-config get alpha > slurm.yaml',
      flags: [...flags, numberFlag],
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
    writes<Options & { file: string }>({
      usage: 'set [cluster]',
      summary: 'replace a whole Slurm configuration; what the file leaves out is cleared',
      example: 'slurm-config set alpha -f slurm.yaml',
      flags: [
        required('-f, --file <file>', 'the configuration (YAML), - for standard input'),
        ...flags,
        yesFlag,
      ],
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
        return replace(platform, target, { before, after, about: options.file, yes: options.yes ?? false });
      },
    }),
    writes<Options>({
      usage: 'edit [cluster]',
      summary: 'change a Slurm configuration in your editor (VISUAL, EDITOR, vi)',
      example: 'slurm-config edit alpha',
      flags: [...flags, yesFlag],
      formats,
      async run({ api, platform, options }, wanted): Promise<Answer> {
        const target = await findTarget({ api, platform }, wanted, options);
        const before = await target.read();
        const { editText } = await import('../edit.ts');
        const text = `# The Slurm configuration of ${target.name}; what is left out is cleared.\n${await formatYaml(before)}\n`;
        return editText('slurm.yaml', text, async (edited, file) => {
          const after = await parseYaml(edited, file);
          // A change that another person made since the first read must not be undone.
          if (!isDeepStrictEqual(await target.read(), before))
            throw failure('It was changed elsewhere in the meantime; look at it, and edit it again.');
          return replace(platform, target, { before, after, about: file, yes: options.yes ?? false });
        });
      },
    }),
    writes<Options>({
      usage: 'restore <cluster> <number>',
      summary: 'set a configuration of the history again',
      example: "slurm-config restore alpha 5 --reason 'number 6 was a mistake'",
      flags: [orgFlag, yesFlag],
      formats,
      async run({ api, platform, options }, wanted = '', number = ''): Promise<Answer> {
        const after = await readVersion({ api, platform }, wanted, number, options);
        const target = await findTarget({ api, platform }, wanted, options);
        const before = await target.read();
        const about = `number ${number}`;
        return replace(platform, target, { before, after, about, yes: options.yes ?? false });
      },
    }),
    ...historyVerbs,
  ],
};
