/** OpenSSH's options for a cluster, its host key in a file of our own, and whether the caller can log in now. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isReadinessObstacle, readinessAdvice } from '../../domain/access/decision.ts';
import { isUuid } from '../../domain/id.ts';
import { failure } from '../exit.ts';
import { writeAtomically } from '../files.ts';
import type { Platform, PlatformReader } from '../net/api.ts';
import { openLocalState, stateDirectory } from '../session/local-state.ts';
import type { Cluster } from './caller.ts';
import { findIdentityFile } from './keys.ts';

export interface SshHost {
  cluster: Cluster;
  access: SshAccess;
}

/**
 * Options of ssh, by their names in ssh_config(5). `identityFile`: the key that the cluster confirmed; `suffix`: leads into a
 * job, such as `+job`.
 */
export function sshOptions(
  { cluster, access }: SshHost,
  knownHosts: string,
  identityFile: string | undefined,
  suffix = '',
): [string, string][] {
  return [
    ['HostName', access.hostname],
    ['Port', String(access.port)],
    ['User', `${cluster.id}.${access.username}${suffix}`],
    // Clusters may share a gateway, and installations an address; the cluster's ID is unique.
    ['HostKeyAlias', cluster.id],
    ['UserKnownHostsFile', quoted(knownHosts)],
    ['StrictHostKeyChecking', 'yes'],
    ...(identityFile === undefined ? [] : [['IdentityFile', quoted(identityFile)] as [string, string]]),
  ];
}

/** The arguments of ssh for `andromeda ssh` and `doctor`; writes the host keys to the known hosts. */
export async function sshArguments(host: SshHost, suffix?: string): Promise<string[]> {
  const knownHosts = await rememberHostKeys([host]);
  const identityFile = await findIdentityFile(host.access.key_fingerprints);
  const options = sshOptions(host, knownHosts, identityFile, suffix);
  return [...options.flatMap(([name, value]) => ['-o', `${name}=${value}`]), hostAlias(host.cluster)];
}

export function hostAlias({ name, id, organization }: Cluster, all: readonly Cluster[] = []): string {
  const isPlain = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name);
  const isShared = all.some((other) => other.name === name && other.id !== id);
  return `andromeda-${isPlain ? (isShared ? `${organization.slug}-${name}` : name) : id}`;
}

/** Whether there is an address to log in to. Throws when a value is unsafe in a file or an argument of ssh. */
export function isReachable({ cluster, access }: SshHost): boolean {
  const { hostname, port, username } = access;
  if (hostname === '' || username === '') return false;
  // A line break would inject an option into ssh's file, for example ProxyCommand.
  const facts: [string, boolean][] = [
    ["a cluster's ID", isUuid(String(cluster.id))],
    ["an organization's name", matches(/^[a-z0-9][a-z0-9._-]{0,62}$/i, cluster.organization.slug)],
    ['an address', matches(/^[a-z0-9:][a-z0-9.:_-]{0,252}$/i, hostname)],
    ['a port', Number.isInteger(port) && port >= 1 && port <= 65_535],
    ['a user name', matches(/^[a-z][a-z0-9_-]{0,31}$/, username)],
    ['a host key', hostKeysOf(access).every((key) => matches(hostKeyLine, key))],
  ];
  const wrong = facts.find(([, isSound]) => !isSound);
  if (wrong) throw failure(`The Platform API gave ${wrong[0]} that ssh cannot be given.`);
  return true;
}

const hostKeyLine = /^(?:ssh|ecdsa|rsa)-[a-z0-9-]{1,40} [A-Za-z0-9+/]{1,16384}={0,2}$/;

function matches(pattern: RegExp, value: unknown): boolean {
  return typeof value === 'string' && pattern.test(value);
}

/** The gateway's host keys: two during a key rotation. */
function hostKeysOf({ host_key: one, other_host_key: other }: SshAccess): string[] {
  return other === undefined ? [one] : [one, other];
}

export async function rememberHostKeys(hosts: readonly SshHost[]): Promise<string> {
  const file = join(stateDirectory(), 'known_hosts');
  await openLocalState().exclusively('known_hosts', async () => {
    const before = await readFile(file, 'utf8').catch(() => '');
    const ids = new Set(hosts.map(({ cluster }) => cluster.id));
    const others = before.split('\n').filter((line) => line !== '' && !ids.has(line.split(' ')[0] ?? ''));
    const ours = hosts.flatMap(({ cluster, access }) =>
      hostKeysOf(access).map((key) => `${cluster.id} ${key}`),
    );
    const after = [...others, ...ours].sort().map((line) => `${line}\n`);
    if (after.join('') === before) return;
    await writeAtomically(file, after.join(''), `The host key could not be written to ${file}`);
  });
  return file;
}

/** Quotes a path for ssh_config(5) and escapes `%`. On Windows uses slashes, which all versions of ssh accept. */
export function quoted(path: string, platform: NodeJS.Platform = process.platform): string {
  const plain = platform === 'win32' ? path.replaceAll('\\', '/') : path;
  return `"${plain.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`;
}

export type SshAccess = Platform['SshAccess'];

export function readSshAccess(
  platform: PlatformReader,
  { id, organization }: Pick<Cluster, 'id' | 'organization'>,
): Promise<SshAccess> {
  const query = { organizationId: organization.id };
  return platform.get('/clusters/{clusterId}/ssh-access', { path: { clusterId: id }, query });
}

export function describeMissing({ reason, lapsed }: SshAccess, name: string): string {
  if (lapsed !== undefined) return `${name}: ${lapsed}`;
  return isReadinessObstacle(reason)
    ? readinessAdvice[reason](name)
    : `${name} does not let you in yet: ${reason}.`;
}

/** Whether only a sign-in is missing: ssh can connect, as the gateway waits for the sign-in. */
export function isSignInDue({ reason, lapsed, hostname }: SshAccess): boolean {
  return lapsed !== undefined && reason === 'access_not_projected' && hostname !== '';
}

export function isOnItsWay({ reason, lapsed }: SshAccess): boolean {
  if (lapsed !== undefined) return false;
  return reason === 'access_not_projected' || reason === 'projection_pending';
}
