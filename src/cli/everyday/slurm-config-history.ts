/** `andromeda slurm-config check`, `status` and `history`: what a configuration would come to, how far one has come, and those of before. */
import { type Answer, listed, printer } from '../answer.ts';
import { failure } from '../exit.ts';
import type { PlatformReader, Reader } from '../net/api.ts';
import type { Platform } from '../net/operations.ts';
import { optional, reads, required } from '../verb.ts';
import { readYaml } from '../yaml-file.ts';
import { type OrgOptions, orgFlag } from './caller.ts';
import { findCluster } from './cluster.ts';

type Check = Platform['SlurmConfigurationCheck'];
type Status = Platform['SlurmConfigurationStatus'];

interface Apis {
  api: Reader;
  platform: PlatformReader;
}

export const base = '/clusters/{clusterId}/scheduler-configuration';

/** What names a cluster's configuration in a call, and the cluster's name. */
export async function findConfigured(apis: Apis, wanted: string, options: OrgOptions) {
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
export function consequencesOf(check: Check): string[] {
  const { changes, hasSlurm, restarts, rollout, openSessions, endedJobs, removedPartitions } = check;
  if (changes.length === 0) return ['It is what stands already: nothing would change.'];
  const live = 'slurmctld takes it up without a restart, unless the set of nodes is another.';
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
  refused: 'The cluster tried it and did not take it; what was there before stays.',
  failed: 'It could not be applied; it is tried again.',
  unknown: 'The cluster has not reported lately.',
  no_slurm: 'It is kept, but the cluster has no Slurm that would take it up.',
  not_in_service: 'The cluster is not in service.',
};

const versions = printer<Platform['SlurmConfigurationVersion']>(
  {
    NUMBER: ({ generation }) => generation,
    SET: ({ createdAt }) => createdAt,
    BY: ({ author }) => author.email,
    CHANGED: (one) => `${listed(one.changes.map(partOf))}${moreOf(one)}`,
    REASON: ({ reason }) => reason,
  },
  'No configuration was ever set.',
);

export const historyVerbs = [
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

export const numberFlag = optional('--number <number>', 'one of the history in place of the one that stands');
