/** `andromeda slurm-config`: a cluster's Slurm configuration as YAML, or the one that new clusters start with. */
import { isDeepStrictEqual } from 'node:util';
import type { Answer } from '../answer.ts';
import { confirm, isAttended } from '../ask.ts';
import { failure, usage } from '../exit.ts';
import type { Platform, PlatformReader, Reader } from '../net/api.ts';
import { printMessage } from '../output.ts';
import { type Noun, optional, reads, required, writes } from '../verb.ts';
import { formatYaml, parseYaml, readYaml } from '../yaml-file.ts';
import { findOrganization, type OrgOptions, orgFlag } from './caller.ts';
import { findCluster } from './cluster.ts';
import { findConfigured, historyVerbs, numberFlag, base as ofCluster } from './slurm-config-history.ts';

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
    read: () => platform.get(ofCluster, given),
    replace: (to, body, about) => to.put(ofCluster, { ...given, body, about }),
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
  return apis.platform.get(`${ofCluster}/versions/{generation}`, { ...given, path });
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
          // A change that somebody else made since the first read must not be undone.
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
