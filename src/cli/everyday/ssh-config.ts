/** `andromeda ssh-config`: Host blocks for ssh, scp, rsync, VS Code and whatever else reads ssh_config(5). */
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Answer } from '../answer.ts';
import { writeAtomically } from '../files.ts';
import type { PlatformReader } from '../net/api.ts';
import { optional, reads } from '../verb.ts';
import {
  type Cluster,
  findCluster,
  isInService,
  listClusters,
  type OrgOptions,
  orgFlag,
  unless,
} from './caller.ts';
import { findIdentityFile, sshDirectory } from './local-keys.ts';
import {
  hostAlias,
  isReachable,
  readSshAccess,
  rememberHostKeys,
  type SshHost,
  sshOptions,
} from './ssh-host.ts';

interface NamedHost extends SshHost {
  /** What ssh is to call it. */
  host: string;
}

/** The clusters that the caller may log in to. */
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

/** The names of the blocks, and what each adds to the login name. */
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

/** Writes the blocks to a file; returns how to include it in the ssh configuration, unless it is included. */
async function put(file: string, text: string, aliases: readonly string[]): Promise<string> {
  // Where that fails, writing says why.
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
