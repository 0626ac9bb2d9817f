/** `andromeda kubeconfig`: a cluster's kubeconfig, printed or merged into a file. */
import { pick } from '../arguments.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { CliError, failure } from '../exit.ts';
import type { Business } from '../net/api.ts';
import type { Answer } from '../output.ts';
import { openLocalState, storedSession } from '../session/local-state.ts';
import { optional, reads } from '../verb.ts';
import { type Apis, type Cluster, findCluster, findMe, type OrgOptions, orgFlag } from './caller.ts';

interface UsableCluster {
  id: string;
  name: string;
  organizationId: string;
  notices: string[];
}

const kind = ['cluster that you may use', 'clusters that you may use'] as const;

/** Finds a cluster by its name, its ID or the beginning of the ID; calls `/me/access` only if the caller cannot list it. */
async function findUsableCluster(apis: Apis, wanted: string, options: OrgOptions): Promise<UsableCluster> {
  const own = await findCluster(apis, wanted, options).catch((error: unknown) => {
    if (error instanceof CliError && ['notFound', 'forbidden'].includes(error.outcome)) return error;
    throw error;
  });
  if ('platform' in own) return ofOrganization(own);
  const answer = await apis.api.get('/me/access');
  const shared = answer.clusters.filter(({ kubernetes }) => kubernetes.granted).map(ofUse);
  try {
    if (shared.length > 0) return pick(kind, shared, wanted, ({ name, id }) => [name, id]);
  } catch (error) {
    const { memberships } = await findMe(apis.api);
    if (memberships.length === 0) throw error;
  }
  if (own instanceof CliError) throw own;
  return ofOrganization(own);
}

function ofOrganization({ id, name, organization }: Cluster): UsableCluster {
  return { id, name, organizationId: organization.id, notices: [] };
}

function ofUse(use: Business['ClusterUse']): UsableCluster {
  const { cluster_id: id, cluster_name: name, organization_id: organizationId, kubernetes } = use;
  return { id, name, organizationId, notices: kubernetes.state === 'ready' ? [] : [kubernetes.message] };
}

export const kubeconfig = reads<OrgOptions & EnvironmentOptions & { merge?: string; use?: true }>({
  usage: 'kubeconfig <cluster>',
  summary: "print a cluster's kubeconfig; it holds no secret, kubectl signs you in when it needs to",
  example: 'kubeconfig gamma --merge ~/.kube/config --use',
  flags: [
    orgFlag,
    optional('--merge <file>', 'put it into this file instead; what else is in there stays'),
    optional('--use', 'make it the one that kubectl uses from now on'),
  ],
  formats: ['text', 'json', 'yaml'],
  async run({ api, platform, options: { merge, use, ...options } }, wanted = ''): Promise<Answer> {
    const { id, name, organizationId, notices } = await findUsableCluster({ api, platform }, wanted, options);
    const query = { organizationId };
    const json = await platform.get('/clusters/{clusterId}/kubeconfig', { path: { clusterId: id }, query });
    const expected = { clusterId: id, issuer: await issuerOf(options) };
    const { formatKubeconfig, mergeKubeconfig, parseKubeconfig } = await import('./kubeconfig-file.ts');
    const checked = parseKubeconfig(json.kubeconfig, expected);
    if (typeof checked === 'string')
      throw failure(`The kubeconfig that the Platform API gave is not used: ${checked}.`);
    const ends = json.accessExpiresAt === undefined ? [] : [`Your access ends at ${json.accessExpiresAt}.`];
    const notes = [...ends, ...notices];
    if (merge === undefined)
      return {
        json,
        text: formatKubeconfig(checked),
        ...(notes.length > 0 && { message: notes.join('\n') }),
      };
    const isCurrent = await mergeKubeconfig(merge, checked, { ...expected, use: use ?? false });
    const how = isCurrent ? 'kubectl uses it now' : `use it with \`kubectl --context ${id}\``;
    return { json, text: '', message: [`${name} is in ${merge}; ${how}.`, ...notes].join('\n') };
  },
});

async function issuerOf(options: EnvironmentOptions): Promise<string> {
  const session = await storedSession(openLocalState(), selectEnvironment(options));
  return session?.issuer ?? '';
}
