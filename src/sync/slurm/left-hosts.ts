/** Cleans or reports left hosts: hosts that are no longer in use and may still have something of ours. */
import type { Manifest } from '../../domain/access/manifest.ts';
import { patienceMs, type SlurmCluster } from './cluster.ts';
import { configurationRows, releasedRows, stepRows } from './desired.ts';
import type { Facts } from './facts.ts';
import type { LeftHost } from './host-record.ts';
import type { Host } from './hosts.ts';
import type { Row } from './script.ts';
import { HostError } from './shell.ts';

/** Limit for one pass, because these hosts may never answer again. */
export const maxLeftHostsAtOnce = 8;

export interface LeftFindings {
  left: string[];
  /** One of the left hosts can be cleaned. */
  isCleaningDue: boolean;
  unreachable: string[];
}

export function findLeftHosts(cluster: SlurmCluster): LeftFindings {
  const all = cluster.leftHosts().map((host) => ({ host, result: cluster.results.get(host.address) }));
  const unreachable = all.flatMap(({ host, result }) =>
    result instanceof HostError ? [{ host, message: leftMessage(host, result.message) }] : [],
  );
  const problems = all.flatMap(({ host }) =>
    (cluster.problems.get(host.address) ?? []).map(({ message }) => leftMessage(host, message)),
  );
  const needed = unreachable.filter(({ host }) => !hasPassed(cluster, host));
  return {
    left: [...needed.map(({ message }) => message), ...problems],
    isCleaningDue: all.some(
      ({ host, result }) =>
        result && !(result instanceof HostError) && fateOf(cluster, host, result) !== 'wait',
    ),
    unreachable: unreachable.map(({ message }) => message),
  };
}

/** Cleans the left hosts that answer; adopted accounts get back there what they had. */
export async function cleanLeftHosts(
  cluster: SlurmCluster,
  { accounts, former }: Manifest,
  signal: AbortSignal,
  superseded?: AbortSignal,
): Promise<void> {
  const answering = cluster
    .leftHosts()
    .filter(({ address }) => !(cluster.results.get(address) instanceof HostError));
  const present = accounts.filter(({ isAdopted, loginState }) => isAdopted && loginState === 'ready');
  const rows = releasedRows({ handBack: present.map(({ username }) => username), ...(former && { former }) });
  const clean = (host: LeftHost) => cleanHost(cluster, host, rows, signal);
  await cluster.onEach(answering.slice(0, maxLeftHostsAtOnce), clean, { superseded, ms: patienceMs.apply });
}

async function cleanHost(
  cluster: SlurmCluster,
  host: LeftHost,
  rows: readonly Row[],
  signal: AbortSignal,
): Promise<void> {
  const { name, log } = cluster.options;
  const facts = await cluster.run(host, 'observe', [], signal);
  if (facts instanceof HostError) return;
  const fate = fateOf(cluster, host, facts);
  if (fate === 'forget') cluster.record.remove(host.address);
  if (fate !== 'clean') return;
  // The configuration stays on a host that shares its files with hosts in use.
  const inUse = cluster.hosts().flatMap((one) => cluster.factsOf(one) ?? []);
  const isShared = inUse.some(({ inode }) => inode === facts.inode);
  const shared: Row[] = isShared ? [['keep', 'configuration']] : [];
  const left = await releaseHost(cluster, host, signal, [...rows, ...shared]);
  if (left.length === 0) log.info('slurm.cleaned', { cluster: name, host: host.address });
}

/** Returns messages about what could not be removed, except for hosts that may well not exist any more. */
export async function releaseLeftHosts(
  cluster: SlurmCluster,
  signal: AbortSignal,
  rows: readonly Row[],
): Promise<string[]> {
  const left: string[] = [];
  for (const host of cluster.leftHosts()) {
    const messages = await releaseHost(cluster, host, signal, rows);
    if (messages.length > 0 && !hasPassed(cluster, host)) left.push(leftMessage(host, messages.join('; ')));
  }
  return left;
}

/**
 * The action for a left host, from its report and those of hosts in use: forget it (it has nothing of ours, or is a host in
 * use under another name), clean it, or wait, because a host in use that does not answer may be the same host.
 */
function fateOf(cluster: SlurmCluster, left: LeftHost, facts: Facts): 'forget' | 'clean' | 'wait' {
  const { token, logins } = facts;
  const present = cluster.hosts();
  if (token !== undefined && present.some((host) => cluster.factsOf(host)?.token === token)) return 'forget';
  const mightBeIt = ({ roles, nodes }: Host) =>
    roles.has('login') || roles.has('controller') || nodes.some((node) => left.nodes.includes(node));
  if (present.some((host) => !cluster.factsOf(host) && mightBeIt(host))) return 'wait';
  if (token === undefined) return logins.length === 0 ? 'forget' : 'wait';
  return 'clean';
}

/** Whether the host left together with its Slurm node or its person, and so may well not exist any more. */
function hasPassed(cluster: SlurmCluster, { nodes, username }: LeftHost): boolean {
  if (username !== undefined) return !cluster.usernames.includes(username);
  return nodes.length > 0 && nodes.every((node) => !cluster.nodes.includes(node));
}

function leftMessage({ address }: Host, reason: string): string {
  return `${address} is not a host of this cluster any more and still has accounts of ours: ${reason}`;
}

/** Removes what is ours from a host. Returns messages about what could not be removed; empty when nothing is left. */
export async function releaseHost(
  cluster: SlurmCluster,
  host: Host,
  signal: AbortSignal,
  extra: readonly Row[] = [],
): Promise<string[]> {
  const rows: Row[] = [
    ['version', 0, 0, 0],
    ['configuration', 'apply'],
    ...configurationRows(cluster.settings, {}),
    ...stepRows(cluster.settings, ['reload']),
    ...extra,
  ];
  const result = await cluster.run(host, 'release', rows, signal);
  if (result instanceof HostError) return [result.message];
  if (result.problems.length === 0) cluster.record.remove(host.address);
  const { name, log } = cluster.options;
  const message = result.notices.map((notice) => `${host.address}: ${notice}`).join('; ');
  if (message !== '') log.warn('slurm.noticed', { cluster: name, words: message });
  return result.problems.map(({ message }) => `${host.address}: ${message}`);
}
