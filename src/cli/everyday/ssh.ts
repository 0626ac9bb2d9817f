/** `andromeda ssh`: the system's ssh, with what it has to know of the cluster. */
import { confirm, isAttended } from '../ask.ts';
import { runAtTerminal } from '../edit.ts';
import { failure } from '../exit.ts';
import type { Api, PlatformReader } from '../net/api.ts';
import { printMessage } from '../output.ts';
import { isWatched, waitFor } from '../progress.ts';
import { writes } from '../verb.ts';
import { type Cluster, findCluster, type OrgOptions, orgFlag } from './caller.ts';
import { listKeys, registerKey } from './keys.ts';
import { adviseNewKey, findIdentityFile, isPlain, listLocalKeys } from './local-keys.ts';
import {
  describeMissing,
  hostAlias,
  isOnItsWay,
  isReachable,
  isSignInDue,
  readSshAccess,
  rememberHostKeys,
  type SshAccess,
  sshOptions,
} from './ssh-host.ts';

const longestWaitMs = 120_000;

export const ssh = writes<OrgOptions>({
  usage: 'ssh <cluster> [arguments...]',
  summary:
    'log in to a cluster, or with --job [ID] into your running job, or run a command there: what follows is for ssh',
  example: 'ssh alpha --job -L 8888:localhost:8888',
  flags: [orgFlag],
  formats: [],
  passesOn: true,
  async run({ api, platform, options }, wanted = '', ...given) {
    const { suffix, rest } = takeJob(given);
    const cluster = await findCluster({ api, platform }, wanted, options);
    const access = await waitUntilReady(api, platform, cluster);
    const host = { cluster, access };
    if (!isReachable(host)) throw failure(`${cluster.name} has no address to log in to.`);
    const knownHosts = await rememberHostKeys([host]);
    const identityFile = await findIdentityFile(access.key_fingerprints);
    const flags = sshOptions(host, knownHosts, identityFile, suffix).flatMap(([name, value]) => [
      '-o',
      `${name}=${value}`,
    ]);
    const args = [...flags, hostAlias(cluster), ...rest];
    const status = await runAtTerminal('ssh', args).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT')
        throw failure('There is no ssh on this machine; install the OpenSSH client.', error);
      throw failure(`ssh could not be started: ${error.message}.`, error);
    });
    return { json: undefined, text: '', status };
  },
});

/** Takes `--job` and an ID, such as 4711, 4711_3 or 4711.node, off the arguments; what is left is for ssh. */
function takeJob(given: readonly string[]): { suffix: string; rest: readonly string[] } {
  const [flag = '', next = ''] = given;
  const [, id] = /^--job=(.+)$/.exec(flag) ?? [];
  if (id !== undefined) return { suffix: `+${id}`, rest: given.slice(1) };
  if (flag !== '--job') return { suffix: '', rest: given };
  return /^\d/.test(next)
    ? { suffix: `+${next}`, rest: given.slice(2) }
    : { suffix: '+job', rest: given.slice(1) };
}

/** Throws a sentence that names what is missing; where a person is at the terminal, fixes it or waits for it. */
async function waitUntilReady(api: Api, platform: PlatformReader, cluster: Cluster): Promise<SshAccess> {
  const access = await readSshAccess(platform, cluster);
  if (access.ready || isSignInDue(access)) return access;
  const { clusters } = await api.get('/me/access');
  const use = clusters.find(({ cluster_id: id }) => id === cluster.id);
  if (use?.ssh.state === 'failed') throw failure(use.ssh.message);
  if (access.reason === 'no_keys' && access.lapsed === undefined && isAttended()) await offerKey(api);
  else if (!isOnItsWay(access) || !isWatched())
    throw failure((await describeSpentKey(api, access)) ?? describeMissing(access, cluster.name));
  return waitFor(longestWaitMs, async () => {
    const found = await readSshAccess(platform, cluster);
    const missing = describeMissing(found, cluster.name).split(/[;:] |\.$/)[0] ?? found.reason;
    return { done: found.ready, missing, found };
  });
}

/** What to do without a key that lets in, where the usual one lies here and cannot be registered again. */
async function describeSpentKey(api: Api, { reason, lapsed }: SshAccess): Promise<string | undefined> {
  if (reason !== 'no_keys' || lapsed !== undefined) return undefined;
  const local = await listLocalKeys();
  if (local.length === 0) return undefined;
  const known = await knownKeys(api);
  return local.some(({ fingerprint }) => known.has(fingerprint))
    ? `You have no SSH key registered that lets you in: ${await adviseNewKey(known)}.`
    : undefined;
}

/** The fingerprints of all keys that were ever registered. */
async function knownKeys(api: Api): Promise<ReadonlySet<string>> {
  return new Set((await listKeys(api)).keys.map(({ fingerprint }) => fingerprint));
}

/** Registers a key that lies here, when the person agrees. A first key makes an account, which is not for free. */
async function offerKey(api: Api): Promise<void> {
  const registered = await knownKeys(api);
  const key = (await listLocalKeys()).find((one) => isPlain(one) && !registered.has(one.fingerprint));
  if (!key)
    throw failure(
      `You have no SSH key registered that lets you in, and ~/.ssh has no Ed25519 key that could be; make one: ${await adviseNewKey(registered)}.`,
    );
  printMessage('You have no SSH key registered. This one is here:');
  printMessage(`  ${key.file}  ${key.fingerprint}`);
  printMessage(
    'Your first key makes your account on the clusters: their nodes restart, and jobs that run on them end.',
  );
  await confirm('Register it?');
  await registerKey(api, key.material, key.file);
}
