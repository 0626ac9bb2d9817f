/** `andromeda admin cluster`. */

import { printer } from '../answer.ts';
import { ask, isAttended } from '../ask.ts';
import { failure, usage } from '../exit.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { printMessage } from '../output.ts';
import { pick } from '../pick.ts';
import { type Noun, optional, reads, writes } from '../verb.ts';
import { readYaml } from '../yaml-file.ts';
import { describeCheck } from './cluster-check.ts';
import { lists } from './common-verbs.ts';
import { absolutePaths } from './lab-file.ts';

type Cluster = Business['OperatorCluster'];

interface AddOptions {
  file?: string;
  organization?: string;
  scheduler?: string;
  siteId?: string;
  siteName?: string;
  simulated?: string;
}

const clusters = printer<Cluster>(
  {
    NAME: (row) => row.name,
    ORGANIZATION: (row) => row.organization_slug,
    SCHEDULER: ({ cluster }) => cluster.selected_scheduler,
    STATE: ({ cluster }) => cluster.state,
    SITE: ({ site }) => site.id,
    DRIVERS: ({ drivers }) => drivers.join(','),
    ACCESS: (row) => row.access_list?.state,
    OBSERVED: (row) => row.observed_at,
    ID: ({ cluster }) => cluster.id,
    FAILURE: (row) => row.failure,
  },
  'There are no clusters.',
);

/** The cluster with this name or ID; of several that had the name over time, the one in service. */
export async function findCluster(api: Reader, wanted: string): Promise<Cluster> {
  const all = (await api.get('/operator/clusters')).clusters;
  const inService = all.filter(({ cluster }) => cluster.state !== 'released');
  const kind = {
    one: 'cluster',
    many: 'clusters',
    nameOf: ({ name }: Cluster) => name,
    idOf: ({ cluster }: Cluster) => cluster.id,
  };
  return pick(kind, inService.some(({ name }) => name === wanted) ? inService : all, wanted);
}

/** The API reports what is lacking. */
type Described = Record<'name' | 'organization', unknown>;

/** The cluster as a lab file describes it: the file's entry, with the flags on top. */
async function describe(name: string, options: AddOptions): Promise<Described> {
  const { file, organization, scheduler, siteId, siteName, simulated } = options;
  if (siteName !== undefined && siteId === undefined) throw usage('--site-name goes with --site-id.');
  const entry = file === undefined ? {} : absolutePaths(await readYaml(file), file);
  return {
    ...entry,
    name,
    ...(organization !== undefined && { organization }),
    ...(scheduler !== undefined && { scheduler }),
    ...(siteId !== undefined && { site: { id: siteId, name: siteName ?? siteId } }),
    ...(simulated !== undefined && { simulated: parseSimulated(simulated) }),
  } as Described;
}

function parseSimulated(text: string): object {
  const [, nodes, gpus] = /^(\d{1,5})x(\d{1,5})$/.exec(text) ?? [];
  if (nodes === undefined) throw usage(`'${text}' is not NODESxGPUS; 2x8 is two nodes with eight GPUs each.`);
  return { computeNodes: Number(nodes), gpusPerNode: Number(gpus) };
}

/** Taking a cluster out of service has to be meant. */
async function confirmRelease({ name, organization_slug: organization }: Cluster): Promise<void> {
  if (!isAttended())
    throw usage(`Releasing ${name} cannot be undone; say \`andromeda admin cluster release ${name} --yes\`.`);
  printMessage(`This takes ${name} of ${organization} out of service, which cannot be undone.`);
  if ((await ask('Type its name to go on: ')).trim() !== name)
    throw failure('That is not its name; the cluster stays in service.');
}

export const cluster: Noun = {
  name: 'cluster',
  summary: 'clusters, in service and out of it',
  verbs: [
    lists(
      'cluster',
      'every cluster, those released too',
      clusters,
      (api) => api.get('/operator/clusters'),
      (json) => json.clusters,
    ),
    writes<AddOptions>({
      usage: 'add <name>',
      summary: 'take a cluster into service',
      example: 'cluster add alpha --organization physics --scheduler sunk --simulated 2x8',
      flags: [
        optional('--organization <slug>', 'whose it is'),
        optional('--scheduler <scheduler>', 'sunk (Slurm) or kubernetes').choices(['sunk', 'kubernetes']),
        optional('--site-id <id>', 'where it stands ("default")'),
        optional('--site-name <name>', 'what people call that place (the ID)'),
        optional('--simulated <nodes-x-gpus>', 'a simulated one: 2x8 has two nodes with eight GPUs each'),
        optional('-f, --file <file>', 'the rest: the cluster as a lab file describes it (YAML)'),
      ],
      async run({ api, options }, name = '') {
        const body = await describe(name, options);
        return clusters.one(await api.post('/operator/clusters', { body, about: options.file }));
      },
    }),
    reads({
      usage: 'check <name>',
      summary: 'ask a Kubernetes cluster which rights the service lacks there',
      example: 'cluster check gamma',
      async run({ api }, name = '') {
        const found = await findCluster(api, name);
        const path = { clusterID: found.cluster.id };
        return describeCheck(await api.get('/operator/clusters/{clusterID}/check', { path }));
      },
    }),
    writes<{ yes?: true; abandon?: true }>({
      usage: 'release <name>',
      summary: 'take a cluster out of service, for good; homes on it are kept',
      example: "cluster release alpha --yes --reason 'sold'",
      flags: [
        optional('--yes', 'without asking'),
        optional('--abandon', 'it cannot be reached any more: say what is left there, and do not wait'),
      ],
      async run({ api, options }, name = '') {
        const found = await findCluster(api, name);
        if (!options.yes) await confirmRelease(found);
        const path = { clusterID: found.cluster.id };
        const query = options.abandon ? { abandon: true } : {};
        const released = await api.post('/operator/clusters/{clusterID}/release', { path, query });
        const { cleanup_state: cleanup } = released.cluster;
        const message = options.abandon && cleanup ? { message: `${found.name}: ${cleanup}.` } : {};
        return { ...clusters.one(released), ...message };
      },
    }),
  ],
};
