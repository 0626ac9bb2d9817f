/** `andromeda ssh`, `code` and `ssh-config`: the system's ssh with the options of a cluster. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseLoginName } from '../../domain/access/ssh-session.ts';
import { commandIo } from '../../lib/command-io.ts';
import { confirm, isAttended } from '../ask.ts';
import { findBrowser } from '../commands/auth.ts';
import { failure, usage } from '../exit.ts';
import { writeAtomically } from '../files.ts';
import type { Api, PlatformReader } from '../net/api.ts';
import { type Answer, printMessage } from '../output.ts';
import { printEffects } from '../plan-text.ts';
import { isWatched, waitFor } from '../progress.ts';
import { optional, reads, writes } from '../verb.ts';
import {
  type Cluster,
  findCluster,
  isInService,
  listClusters,
  type OrgOptions,
  orgFlag,
  unless,
} from './caller.ts';
import {
  adviseNewKey,
  findIdentityFile,
  isPlain,
  listKeys,
  listLocalKeys,
  readKeyPlan,
  registerKey,
  sshDirectory,
} from './keys.ts';
import {
  describeMissing,
  hostAlias,
  isOnItsWay,
  isReachable,
  isSignInDue,
  readSshAccess,
  rememberHostKeys,
  type SshAccess,
  type SshHost,
  sshArguments,
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
    const args = [...(await sshArguments(host, suffix)), ...rest];
    const status = await runSsh(args).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT')
        throw failure('There is no ssh on this machine; install the OpenSSH client.', error);
      throw failure(`ssh could not be started: ${error.message}.`, error);
    });
    return { json: undefined, text: '', status };
  },
});

/** Splits `--job` and an ID, such as 4711, 4711_3 or 4711.node, from the arguments; the rest is for ssh. */
function takeJob(given: readonly string[]): { suffix: string; rest: readonly string[] } {
  const [flag = '', next = ''] = given;
  const [, id] = /^--job=(.+)$/.exec(flag) ?? [];
  if (id !== undefined) return { suffix: `+${id}`, rest: given.slice(1) };
  if (flag !== '--job') return { suffix: '', rest: given };
  return /^\d/.test(next)
    ? { suffix: `+${next}`, rest: given.slice(2) }
    : { suffix: '+job', rest: given.slice(1) };
}

/** Waits for access, or offers to register a key, if a person is at the terminal; otherwise throws what is missing. */
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

/** Advice when the local key cannot be registered again, because it was registered before and gives no access. */
async function describeSpentKey(api: Api, { reason, lapsed }: SshAccess): Promise<string | undefined> {
  if (reason !== 'no_keys' || lapsed !== undefined) return undefined;
  const local = await listLocalKeys();
  if (local.length === 0) return undefined;
  const known = await knownKeys(api);
  return local.some(({ fingerprint }) => known.has(fingerprint))
    ? `You have no SSH key registered that lets you in: ${await adviseNewKey(known)}.`
    : undefined;
}

async function knownKeys(api: Api): Promise<ReadonlySet<string>> {
  return new Set((await listKeys(api)).keys.map(({ fingerprint }) => fingerprint));
}

/** Registers a local key if the person agrees: a first key creates an account, which may restart services. */
async function offerKey(api: Api): Promise<void> {
  const registered = await knownKeys(api);
  const key = (await listLocalKeys()).find((one) => isPlain(one) && !registered.has(one.fingerprint));
  if (!key)
    throw failure(
      `You have no SSH key registered that lets you in, and ~/.ssh has no Ed25519 key that could be; make one: ${await adviseNewKey(registered)}.`,
    );
  printMessage('You have no SSH key registered. This one is here:');
  printMessage(`  ${key.file}  ${key.fingerprint}`);
  printEffects(await readKeyPlan(api));
  await confirm('Register it?');
  await registerKey(api, key.material, key.file);
}

export const code = reads<OrgOptions & { job?: string | true; open?: true }>({
  usage: 'code <cluster>',
  summary: 'the address that opens VS Code there, by the hosts of `andromeda ssh-config --write`',
  example: 'code alpha --job --open',
  flags: [
    orgFlag,
    optional('--job [id]', 'in your job that started last, or in this one'),
    optional('--open', 'open it'),
  ],
  async run({ api, platform, options: { job, open, ...options } }, wanted = '') {
    const cluster = await findCluster({ api, platform }, wanted, options);
    const access = await readSshAccess(platform, cluster);
    if (!isReachable({ cluster, access })) throw failure(`${cluster.name} has no address to log in to.`);
    const { clusters } = await listClusters({ api, platform }, {});
    const alias = hostAlias(cluster, clusters.filter(isInService));
    const user = `${cluster.id}.${access.username}+${job}`;
    if (typeof job === 'string' && !parseLoginName(user))
      throw usage(`'${job}' is not the ID of a job, such as 4711, 4711_3 or 4711.node.`);
    // Remote-SSH reads JSON in hexadecimal in place of a host name that needs its own login name.
    const host =
      typeof job === 'string'
        ? Buffer.from(JSON.stringify({ hostName: alias, user })).toString('hex')
        : `${alias}${job === true ? '-job' : ''}`;
    const url = `vscode://vscode-remote/ssh-remote+${host}/`;
    if (open) openAddress(url);
    return { json: { url }, text: url };
  },
});

function openAddress(url: string): void {
  const { env } = commandIo();
  // $BROWSER may not handle this URL scheme; the desktop does.
  const [program, ...args] = findBrowser({ ...env, BROWSER: '' }, process.platform) ?? [];
  if (program === undefined) throw failure(`There is no desktop here to open ${url} with.`);
  const child = spawn(program, [...args, url], { env, stdio: 'ignore', detached: true });
  child.on('error', () => {}); // the address is on the screen
  child.unref();
}

interface NamedHost extends SshHost {
  host: string;
}

async function findHosts(platform: PlatformReader, clusters: readonly Cluster[]): Promise<NamedHost[]> {
  const found = await Promise.all(
    clusters.filter(isInService).map(async (cluster) => {
      const access = await unless(readSshAccess(platform, cluster), 'forbidden');
      return access && { cluster, access };
    }),
  );
  const hosts = found.filter((host) => host !== undefined).filter(isReachable);
  const all = hosts.map(({ cluster }) => cluster);
  return hosts.map((one) => ({ ...one, host: hostAlias(one.cluster, all) }));
}

function blockNames({ host }: NamedHost, all: readonly NamedHost[]): [string, string][] {
  const ofJob = `${host}-job`;
  const isTaken = all.some((other) => other.host === ofJob);
  return [[host, ''], ...(isTaken ? [] : [[ofJob, '+job'] as [string, string]])];
}

async function blocks(hosts: readonly NamedHost[]): Promise<string> {
  const knownHosts = await rememberHostKeys(hosts);
  const each = await Promise.all(
    hosts.map(async (one) => {
      const identityFile = await findIdentityFile(one.access.key_fingerprints);
      const block = (host: string, suffix: string) =>
        [
          `Host ${host}`,
          ...sshOptions(one, knownHosts, identityFile, suffix).map(([name, value]) => `    ${name} ${value}`),
        ].join('\n');
      return blockNames(one, hosts).map(([host, suffix]) => block(host, suffix));
    }),
  );
  return ['# Written by `andromeda ssh-config`; a later run replaces it.', ...each.flat()].join('\n\n');
}

/** Writes the Host blocks to a file. Returns how to include it in the ssh configuration, if it is not yet included. */
async function put(file: string, text: string, aliases: readonly string[]): Promise<string> {
  // An error here is reported by the write that follows.
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(() => {});
  await writeAtomically(file, `${text}\n`, `${file} could not be written`);
  const config = await readFile(join(sshDirectory(), 'config'), 'utf8').catch(() => '');
  const name = dirname(file) === sshDirectory() ? file.slice(sshDirectory().length + 1) : file;
  const included = config.split('\n').some((line) => /^\s*include\s/i.test(line) && line.includes(name));
  const done = `${file} has ${aliases.join(', ')}.`;
  if (included) return done;
  return `${done}\nPut this line at the beginning of ${join(sshDirectory(), 'config')}:\n\n    Include ${name}\n`;
}

export const sshConfig = reads<OrgOptions & { write?: string | true }>({
  usage: 'ssh-config [cluster]',
  summary: 'print Host blocks for ssh, scp, rsync and VS Code: andromeda-<cluster>, and -job into a job',
  example: 'ssh-config --write',
  flags: [
    orgFlag,
    optional('--write [file]', 'put them into a file for ssh to include (~/.ssh/andromeda.conf)'),
  ],
  formats: ['text', 'json', 'yaml'],
  async run({ api, platform, options: { write, ...options } }, wanted): Promise<Answer> {
    const clusters =
      wanted === undefined
        ? (await listClusters({ api, platform }, options)).clusters
        : [await findCluster({ api, platform }, wanted, options)];
    const hosts = await findHosts(platform, clusters);
    const json = {
      hosts: hosts.map(({ host, cluster, access }) => ({ host, cluster_id: cluster.id, ...access })),
    };
    if (hosts.length === 0) return { json, text: '', message: 'There is no cluster that you may log in to.' };
    const text = await blocks(hosts);
    if (write === undefined) return { json, text };
    const file = write === true ? join(sshDirectory(), 'andromeda.conf') : resolve(write);
    const names = hosts.flatMap((host) => blockNames(host, hosts).map(([name]) => name));
    return { json, text: '', message: await put(file, text, names) };
  },
});

/** Runs ssh at the person's terminal. Resolves to its exit status, or 128 plus the number of the signal that ended it. */
async function runSsh(args: readonly string[]): Promise<number> {
  // SIGINT from the terminal reaches ssh itself: if this process ended first, ssh and the shell would share the terminal.
  // Signals that only this process gets are forwarded, from the start.
  const { env, childStdio: stdio, signals } = commandIo();
  const ignore = () => {};
  const handOn = (signal: NodeJS.Signals) => child.kill(signal);
  signals.on('SIGINT', ignore);
  signals.on('SIGTERM', handOn);
  signals.on('SIGHUP', handOn);
  const child = spawn('ssh', args, { env, stdio });
  try {
    const ended = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    const [status, signal] = ended;
    return status ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  } finally {
    signals.off('SIGINT', ignore);
    signals.off('SIGTERM', handOn);
    signals.off('SIGHUP', handOn);
  }
}
