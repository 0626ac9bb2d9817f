/** `andromeda admin cluster`, `machine`, `grant`, `plan`, `apply` and `export`: clusters, grants on them, and lab files. */
import { dirname, resolve } from 'node:path';
import { checkLab, type Lab } from '../../domain/clusters/lab.ts';
import { LabError } from '../../domain/clusters/lab-member.ts';
import { withClusterPaths, withLabPaths } from '../../domain/clusters/lab-paths.ts';
import { planLab } from '../../domain/clusters/lab-plan.ts';
import { directPeople } from '../../domain/slurm/direct.ts';
import { parseEnd, pick } from '../arguments.ts';
import { ask, confirm, isAttended } from '../ask.ts';
import { machineTable } from '../everyday/clusters.ts';
import { CliError, exitStatus, failure, usage } from '../exit.ts';
import { formatYaml, parseYaml, readInput, readYaml } from '../files.ts';
import type { Business, Reader } from '../net/api.ts';
import { type Answer, listed, printer, printMessage } from '../output.ts';
import { describePlan, isDestructive } from '../plan-text.ts';
import { changesOne, lists, type Noun, optional, reads, required, writes, yesFlag } from '../verb.ts';
import { surveyVerb } from './survey.ts';

interface GrantOptions {
  cluster: string;
  relation: string;
  namespace?: string;
  roleId?: string;
  allowWiderRole?: true;
  expires?: string;
}

const grants = printer<Business['OperatorGrant']>(
  {
    PERSON: ({ grant }) => grant.username,
    CLUSTER: (row) => row.cluster_name,
    RELATION: ({ grant }) => grant.relation,
    NAMESPACE: ({ grant }) => grant.scope,
    ROLE: ({ grant }) => grant.role_id,
    EXPIRES: ({ grant }) => grant.expires_at,
    ID: ({ grant }) => grant.id,
  },
  'There are no grants.',
);

export const grant: Noun = {
  name: 'grant',
  summary: 'clusters and namespaces shared with people',
  verbs: [
    lists('every live grant', grants, 'grants', (api) => api.get('/operator/grants')),
    writes<GrantOptions>({
      usage: 'add <email>',
      summary: 'share a cluster, or one namespace of it, with a person',
      example:
        'grant add eve@elsewhere.example --cluster alpha \\\n      --relation kubernetes.developer --namespace team-a',
      flags: [
        required('--cluster <name>', 'the cluster, by name or ID'),
        required('--relation <relation>', 'what they may do').choices([
          'kubernetes.viewer',
          'kubernetes.developer',
          'kubernetes.admin',
        ]),
        optional('--namespace <namespace>', 'only there'),
        optional('--role-id <role>', 'a ClusterRole that narrows it'),
        optional('--allow-wider-role', 'the role may give more than the relation'),
        optional('--expires <time>', 'when it ends: a time, or a span from now such as 2h'),
      ],
      async run({ api, options }, email) {
        const body = {
          email,
          expires_at: parseEnd('--expires', options.expires),
          cluster_id: (await findCluster(api, options.cluster)).cluster.id,
          relation: options.relation,
          scope: options.namespace,
          role_id: options.roleId,
          ...(options.allowWiderRole && { allow_wider_role: true }),
        };
        return grants.one(await api.post('/operator/grants', { body }));
      },
    }),
    changesOne(
      'grant',
      'revoke',
      'end a grant',
      grants,
      (api, id) => api.post('/operator/grants/{grantID}/revoke', { path: { grantID: id } }),
      'the project is over',
    ),
  ],
};

interface OnCluster {
  cluster: string;
}

const clusterFlag = required('--cluster <name>', 'the cluster, by name or ID');

async function list(api: Reader, { cluster }: OnCluster) {
  const { id } = (await findCluster(api, cluster)).cluster;
  return api.get('/operator/clusters/{clusterID}/machines', { path: { clusterID: id } });
}

async function find(api: Reader, options: OnCluster, name: string): Promise<{ machineID: string }> {
  const { machines } = await list(api, options);
  const kind = [`machine on ${options.cluster}`, `machines on ${options.cluster}`] as const;
  return { machineID: pick(kind, machines, name, (machine) => [machine.name, machine.id]).id };
}

const decides = (to: 'admit' | 'quarantine', summary: string, example: string) =>
  writes<OnCluster>({
    usage: `${to} <name>`,
    summary,
    example: `machine ${example}`,
    flags: [clusterFlag],
    async run({ api, options }, name = '') {
      const path = await find(api, options, name);
      return machineTable.one(await api.post(`/operator/machines/{machineID}/${to}`, { path }));
    },
  });

export const machine: Noun = {
  name: 'machine',
  summary: 'machines of a cluster, and which of them may do work',
  verbs: [
    reads<OnCluster>({
      usage: 'list',
      summary: 'the machines of a cluster',
      example: 'machine list --cluster alpha',
      flags: [clusterFlag],
      async run({ api, options }) {
        const json = await list(api, options);
        return machineTable.many(json, json.machines);
      },
    }),
    decides('admit', 'let a machine do work', 'admit node-1 --cluster alpha'),
    decides(
      'quarantine',
      'keep a machine from doing work',
      "quarantine node-1 --cluster alpha --reason 'ECC errors'",
    ),
  ],
};

type RightsCheck = Business['ClusterCheck'];

const rights = printer<RightsCheck['rights'][number]>(
  { RIGHT: ({ right }) => right, ALLOWED: ({ allowed }) => (allowed ? 'yes' : 'NO') },
  '',
);

/** Describes missing rights and the ClusterRole that gives them; the status is a failure if a needed right is missing. */
export async function describeCheck(json: RightsCheck): Promise<Answer> {
  const { server, user, fault, cluster_role } = json;
  const lacking = json.rights.filter(({ allowed }) => !allowed);
  const who = user ?? 'The service';
  const role = (await formatYaml(cluster_role)).trimEnd();
  // stdout has only the ClusterRole, so that it can be piped to kubectl.
  const how = `What is printed is the least that it needs, for kubectl apply -f -; bind it to ${user ?? 'its account'}.`;
  if (fault !== null) {
    const message = `${server || 'The API server'}: ${fault}\n${how}`;
    return { json, text: role, message, status: exitStatus.failure };
  }
  const lines = [rights.many(json, json.rights).text, ...json.optional.map(describeOptional)];
  const table = lines.join('\n');
  if (lacking.length === 0)
    return { json, text: table, message: `${who} has every right that is needed at ${server}.` };
  const message = `${table}\n\n${who} lacks ${lacking.length} of ${json.rights.length} rights at ${server}. ${how}`;
  return { json, text: role, message, status: exitStatus.failure };
}

function describeOptional({ right, allowed, use }: RightsCheck['optional'][number]): string {
  return `It may${allowed ? '' : ' not'} ${right}, which it does without: ${allowed ? 'it says' : 'it cannot say'} ${use}.`;
}

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
    DIRECT: ({ direct }) => direct && `${listed(directPeople(direct)) || 'none'} until ${direct.until}`,
    FAILURE: (row) => row.failure,
  },
  'There are no clusters.',
);

async function findCluster(api: Reader, wanted: string): Promise<Cluster> {
  const all = (await api.get('/operator/clusters')).clusters;
  const inService = all.filter(({ cluster }) => cluster.state !== 'released');
  const among = inService.some(({ name }) => name === wanted) ? inService : all;
  return pick(['cluster', 'clusters'], among, wanted, ({ name, cluster }) => [name, cluster.id]);
}

type NewCluster = Record<'name' | 'organization', unknown>;

async function describe(name: string, options: AddOptions): Promise<NewCluster> {
  const { file, organization, scheduler, siteId, siteName, simulated } = options;
  if (siteName !== undefined && siteId === undefined) throw usage('--site-name goes with --site-id.');
  const entry = file === undefined ? {} : withClusterPaths(await readYaml(file), fromDirectoryOf(file));
  return {
    ...entry,
    name,
    ...(organization !== undefined && { organization }),
    ...(scheduler !== undefined && { scheduler }),
    ...(siteId !== undefined && { site: { id: siteId, name: siteName ?? siteId } }),
    ...(simulated !== undefined && { simulated: parseSimulated(simulated) }),
  } as NewCluster;
}

function parseSimulated(text: string): object {
  const [, nodes, gpus] = /^(\d{1,5})x(\d{1,5})$/.exec(text) ?? [];
  if (nodes === undefined) throw usage(`'${text}' is not NODESxGPUS; 2x8 is two nodes with eight GPUs each.`);
  return { computeNodes: Number(nodes), gpusPerNode: Number(gpus) };
}

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
    lists('every cluster, those released too', clusters, 'clusters', (api) => api.get('/operator/clusters')),
    writes<AddOptions>({
      usage: 'add <name>',
      summary: 'take a cluster into service',
      example: 'cluster add alpha --organization physics --scheduler slurm --simulated 2x8',
      flags: [
        optional('--organization <slug>', 'whose it is'),
        optional('--scheduler <scheduler>', 'slurm (or sunk) or kubernetes').choices([
          'slurm',
          'sunk',
          'kubernetes',
        ]),
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
    surveyVerb(findCluster),
    writes<{ yes?: true; abandon?: true; handBack?: true }>({
      usage: 'release <name>',
      summary: 'take a cluster out of service, for good; homes on it are kept',
      example: "cluster release alpha --yes --reason 'sold'",
      flags: [
        yesFlag,
        optional('--hand-back', 'adopted accounts get back what they had before'),
        optional('--abandon', 'it cannot be reached any more: say what is left there, and do not wait'),
      ],
      async run({ api, options }, name = '') {
        const found = await findCluster(api, name);
        if (!options.yes) await confirmRelease(found);
        const path = { clusterID: found.cluster.id };
        const query = {
          ...(options.abandon && { abandon: true }),
          ...(options.handBack && { hand_back: true }),
        };
        const released = await api.post('/operator/clusters/{clusterID}/release', { path, query });
        const { cleanup_state: cleanup } = released.cluster;
        const message = options.abandon && cleanup ? { message: `${found.name}: ${cleanup}.` } : {};
        return { ...clusters.one(released), ...message };
      },
    }),
  ],
};

function fromDirectoryOf(file: string): (path: string) => string {
  const directory = file === '-' ? process.cwd() : dirname(resolve(file));
  return (path) => resolve(directory, path);
}

interface LabOptions {
  file: string;
  prune?: boolean;
}

const flags = [
  required('-f, --file <file>', 'the lab file (YAML), - for standard input'),
  optional('--prune', 'members, grants and clusters that the file leaves out go'),
];

/** Timeout of a lab file: thousands of people are one change, which may also wait for other changes. */
const labMs = 1_800_000;

/** Sends a lab file to the API. The message of a refusal names the line of the fault. */
async function askAbout<T>(
  { file, prune = false }: LabOptions,
  ask: (given: { body: { lab: Record<string, unknown>; prune: boolean }; about: string }) => Promise<T>,
): Promise<T> {
  const text = await readInput(file);
  const lab = withLabPaths(await parseYaml(text, file), fromDirectoryOf(file));
  try {
    return await ask({ body: { lab, prune }, about: file });
  } catch (error) {
    const at = error instanceof CliError ? faultIn(lab, error.message) : undefined;
    if (!(error instanceof CliError) || !at) throw error;
    const { lineOf } = await import('../../lib/yaml-lines.ts');
    const sentence = error.message.replace(file, () => lineOf(file, text, at));
    throw new CliError(error.outcome, sentence, { cause: error });
  }
}

/** Finds the path in a lab that a refusal is about, from the API's field name or by the domain's rules for labs. */
function faultIn(lab: Lab, refusal: string): readonly (string | number)[] | undefined {
  const [, field] = /The field lab\.(\S+) of the body/.exec(refusal) ?? [];
  if (field !== undefined) return field.split('.');
  try {
    planLab({}, checkLab(lab), { prune: false, now: Date.now() });
  } catch (error) {
    if (error instanceof LabError && refusal.endsWith(error.message)) return error.at;
  }
  return undefined;
}

export const plan = reads<LabOptions>({
  usage: 'plan',
  summary: 'show what applying a lab file would change, restart and end',
  example: 'plan -f lab.yaml --prune',
  flags,
  async run({ api, options }): Promise<Answer> {
    const json = await askAbout(options, (given) =>
      api.ask('/operator/lab/plan', { ...given, timeoutMs: labMs }),
    );
    return { json, text: describePlan(json, 'Nothing would change.') };
  },
});

export const apply = writes<LabOptions & { yes?: true }>({
  usage: 'apply',
  summary: 'bring the installation to a lab file, all of it or nothing',
  example: 'apply -f lab.yaml',
  flags: [...flags, yesFlag],
  async run({ api, options }): Promise<Answer> {
    const json = await askAbout(options, async (given) => {
      // At a terminal, the person first sees what would be lost.
      if (!options.yes && isAttended()) {
        const planned = await api.ask('/operator/lab/plan', { ...given, timeoutMs: labMs });
        if (isDestructive(planned)) {
          printMessage(`${describePlan(planned, '')}\n`);
          await confirm('Go on?');
        }
      }
      return api.post('/operator/lab', { ...given, timeoutMs: labMs });
    });
    return { json, text: describePlan(json, 'Nothing to change.') };
  },
});

export const exportLab = reads({
  usage: 'export',
  summary: 'print the installation as a lab file, which apply takes',
  example: 'export > lab.yaml',
  formats: ['yaml', 'json'],
  async run({ api }): Promise<Answer> {
    const json = await api.get('/operator/lab');
    return { json, text: '' };
  },
});
