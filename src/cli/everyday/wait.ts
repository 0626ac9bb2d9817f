/** `andromeda wait`: shows progress on a terminal, prints nothing in a pipe, and exits 0 once the change is in place. */
import { effectivePermissions } from '../../domain/access/permission.ts';
import { parseSpan } from '../arguments.ts';
import { CliError, failure } from '../exit.ts';
import type { Business, Platform } from '../net/api.ts';
import type { Answer } from '../output.ts';
import { type Check, isWatched, waitFor } from '../progress.ts';
import { type Noun, optional, reads } from '../verb.ts';
import {
  type Apis,
  type Cluster,
  findCluster,
  findMe,
  findMember,
  findOrganization,
  isInService,
  listClusters,
  named,
  type OrgOptions,
  orgFlag,
  unless,
  usableIn,
} from './caller.ts';
import { describeCondition } from './clusters.ts';
import { listKeys } from './keys.ts';
import { readPermissions } from './members.ts';
import { readSshAccess } from './ssh-host.ts';

interface WaitOptions extends OrgOptions {
  timeout?: string;
}

const timeoutFlag = optional('--timeout <span>', 'how long at most, such as 30s (10m)');
const flags = [orgFlag, timeoutFlag];
const formats = ['text', 'json', 'yaml'];

function timeoutOf({ timeout }: WaitOptions): number {
  return parseSpan('--timeout', timeout ?? '10m');
}

interface Observed<T> {
  id: string;
  name: string;
  observed: T;
}

async function checkAll<T>(
  clusters: readonly Cluster[],
  lackOf: (cluster: Cluster) => Promise<{ lack: string | undefined; observed: T }>,
): Promise<Check<Observed<T>[]>> {
  const checked = await Promise.all(
    clusters.map(async (cluster) => ({ id: cluster.id, name: cluster.name, ...(await lackOf(cluster)) })),
  );
  const lacking = checked.filter(({ lack }) => lack !== undefined);
  return {
    done: lacking.length === 0,
    missing: lacking.map(({ name, lack }) => `${name}: ${lack}`).join('; '),
    found: checked.map(({ lack: _, ...found }) => found),
  };
}

function answer(json: unknown, names: readonly string[], none: string): Answer {
  const message = names.length === 0 ? none : `In place on ${names.join(', ')}.`;
  return { json, text: '', ...(isWatched() && { message }) };
}

async function clustersOfKey(
  { api, platform }: Apis,
  { cluster, ...options }: WaitOptions & { cluster?: string },
): Promise<Cluster[]> {
  if (cluster !== undefined) return [await findCluster({ api, platform }, cluster, options)];
  const { clusters, hidden } = await listClusters({ api, platform }, options);
  // Includes clusters that the person may use but not list.
  const all = [...slurmClusters(clusters), ...(await usableIn(api, hidden, 'ssh'))];
  const open = await Promise.all(
    all.map(async (one) => ((await unless(readSshAccess(platform, one), 'forbidden')) ? one : undefined)),
  );
  return open.filter((one) => one !== undefined);
}

function slurmClusters(clusters: readonly Cluster[]): Cluster[] {
  return clusters.filter(
    ({ platform, business }) =>
      platform?.status.lifecycleState === 'active' && business?.selected_scheduler !== 'kubernetes',
  );
}

const waitForKey = reads<WaitOptions & { cluster?: string }>({
  usage: 'key',
  summary: 'until your SSH keys, a revocation and your login shell are in place',
  example: 'wait key --timeout 2m',
  flags: [optional('--cluster <cluster>', 'only there (everywhere)'), ...flags],
  formats,
  async run({ api, platform, options }) {
    const timeoutMs = timeoutOf(options);
    const clusters = await clustersOfKey({ api, platform }, options);
    const found = await waitFor(timeoutMs, async () => {
      const [{ generation }, { user }] = await Promise.all([listKeys(api), findMe(api)]);
      return checkAll(clusters, async (cluster) => {
        const observed = await readSshAccess(platform, cluster);
        return { lack: lackOfKeys(observed, { generation, shell: user.login_shell }), observed };
      });
    });
    const json = found.map(({ observed, ...cluster }) => ({ ...cluster, ssh_access: observed }));
    const names = clusters.map(({ name }) => name);
    return answer({ clusters: json }, names, 'There is no Slurm cluster that you may log in to.');
  },
});

const waitForPermission = reads<WaitOptions>({
  usage: 'permission [email]',
  summary: "until a member's permissions (yours) are in place on every cluster",
  example: 'wait permission bob@physics.example',
  flags,
  formats,
  async run({ api, platform, options }, email) {
    const timeoutMs = timeoutOf(options);
    const organization = await findOrganization(api, options);
    const wanted = email ?? (await findMe(api)).user.primary_email;
    const { user_id: userID } = await findMember(api, organization, wanted);
    const path = { orgID: organization.id, userID };
    const { clusters, hidden } = await listClusters({ api, platform }, { org: organization.id });
    if (hidden.length > 0)
      throw new CliError('forbidden', 'What has reached the clusters is shown to who holds clusters.read.');
    const concerned = slurmClusters(clusters);
    const found = await waitFor(timeoutMs, async () => {
      const [held, kubernetes] = await Promise.all([
        readPermissions(api, path),
        api.get('/organizations/{orgID}/members/{userID}/kubernetes-access', { path }),
      ]);
      const missing = kubernetes.clusters
        .filter(({ state }) => state !== 'applied' && state !== 'none')
        .map(({ cluster_name: name, state, message }) => {
          const why = message === undefined ? '' : ` (${message})`;
          return `${name}: its Kubernetes permissions are ${state}${why}`;
        });
      if (missing.length > 0) return { done: false, missing: missing.join('; '), found: [] };
      return checkAll(concerned, async ({ id }) => {
        const ofCluster = { orgID: organization.id, clusterID: id };
        const access = api.get('/organizations/{orgID}/clusters/{clusterID}/access', { path: ofCluster });
        const observed = await unless(access, 'notFound');
        return { lack: lackOfPermission(observed, held), observed };
      });
    });
    const json = found.map(({ observed, ...cluster }) => ({ ...cluster, access: observed ?? null }));
    const names = concerned.map(({ name }) => name);
    return answer({ clusters: json }, names, `${organization.slug} has no Slurm cluster in service.`);
  },
});

const waitForCluster = reads<WaitOptions>({
  usage: 'cluster <cluster>',
  summary: 'until a cluster is active and its scheduler ready',
  example: 'wait cluster alpha --timeout 30m',
  flags,
  formats,
  async run({ api, platform, options }, wanted = '') {
    const timeoutMs = timeoutOf(options);
    const cluster = await findCluster({ api, platform }, wanted, options);
    const [found] = await waitFor(timeoutMs, () =>
      checkAll([cluster], async () => {
        const [current, reported] = await Promise.all([
          platform.get('/clusters/{clusterId}', named(cluster)),
          platform.get('/clusters/{clusterId}/options', named(cluster)),
        ]);
        const { lifecycleState } = current.status;
        if (lifecycleState === 'releasing' || !isInService({ ...cluster, platform: current }))
          throw failure(`${cluster.name} is ${lifecycleState}; it will not come back.`);
        return { lack: lackOfCluster(lifecycleState, reported), observed: { current, reported } };
      }),
    );
    const json = { cluster: found?.observed.current, options: found?.observed.reported };
    return answer(json, [cluster.name], '');
  },
});

export const wait: Noun = {
  name: 'wait',
  summary: 'until a change is in place everywhere',
  verbs: [waitForKey, waitForPermission, waitForCluster],
};

interface Wanted {
  generation: number;
  shell: string;
}

/**
 * What a cluster still lacks of the caller's keys and shell; undefined when nothing (contract, "Confirming a key or shell
 * change reached a cluster").
 */
export function lackOfKeys(access: Platform['SshAccess'], { generation, shell }: Wanted): string | undefined {
  if (!access.observation_current) return 'it has not reported the newest list';
  if (access.ssh_key_set_generation !== generation)
    return `it has version ${access.ssh_key_set_generation} of your keys, not ${generation}`;
  return access.shell === shell ? undefined : 'it has not set your login shell';
}

export interface Applied extends Pick<Business['AccessList'], 'state' | 'waiting_hosts'> {
  users: readonly Pick<Business['AccessListUser'], 'user_id' | 'access_mode'>[];
}

export function lackOfPermission(
  list: Applied | undefined,
  held: Pick<Business['MemberPermissions'], 'user_id' | 'role' | 'permissions'>,
): string | undefined {
  const keys = effectivePermissions(held.role, held.permissions);
  const wanted = keys.has('clusters.ssh.admin') ? 'admin' : keys.has('clusters.ssh') ? 'use' : undefined;
  const listed = list?.users.find(({ user_id: id }) => id === held.user_id)?.access_mode;
  if (listed !== wanted) return 'its access list is being rebuilt';
  if (!list) return undefined;
  if (list.state === 'converged') return undefined;
  const waiting = list.waiting_hosts?.map(({ host, since }) => `${host} (since ${since})`) ?? [];
  const without = waiting.length > 0 ? `, without ${waiting.slice(0, 5).join(', ')}` : '';
  return `its access list is ${list.state}${without}`;
}

export function lackOfCluster(
  lifecycleState: string,
  options: Platform['ClusterOptions'],
): string | undefined {
  if (lifecycleState !== 'active') return `it is ${lifecycleState}`;
  if (options.state !== 'available') return 'it has not reported';
  const { ready } = options.scheduler;
  if (ready?.status === 'True') return undefined;
  const why = describeCondition(ready);
  return why === undefined ? 'it has not said whether its scheduler is ready' : `scheduler ready: ${why}`;
}
