/** Combines the reports of a cluster's hosts into the report of the cluster. */
import type {
  AccountReport,
  BlockedPerson,
  ConditionReport,
  DirectoryNumber,
  GpuDay,
  LoginNodeReport,
  MachineReport,
  SlurmReport,
  StorageReport,
  WaitingHost,
} from '../../domain/access/manifest.ts';
import { present } from '../../domain/present.ts';
import { mostWaiting, type SlurmCluster } from './cluster.ts';
import type { Facts, ManifestVersion } from './facts.ts';
import { type Host, type LoginNode, nameOf } from './hosts.ts';
import { HostError, unaskedText } from './shell.ts';

export interface Findings
  extends Pick<SlurmCluster, 'settings' | 'results' | 'problems' | 'confirmed' | 'wantedGeneration'> {
  hosts: readonly Host[];
  loginNodes: readonly LoginNode[];
  /** The addresses of the recorded hosts that have something of ours. */
  managed: ReadonlySet<string>;
  /** The facts of the controller's last report. */
  controllerFacts: Facts;
  /** A change is being applied: hosts may have different versions. */
  isApplying: boolean;
  /** Progress of that change, as a message for a person. */
  progress: string | undefined;
  /** The days of GPU time that were read from Slurm's accounting since the last report. */
  gpuDays: readonly GpuDay[];
  /** Messages about hosts that were left behind. */
  left: readonly string[];
  /** One of the left hosts can be cleaned. */
  isCleaningDue: boolean;
  /** Names of the login nodes that were up in the last report. */
  wereUp: ReadonlySet<string>;
  /** By login node name: failed connections in a row to its sshd, for login nodes on this machine. */
  silent: ReadonlyMap<string, number>;
}

function factsAt({ results }: Findings, address: string): Facts | undefined {
  const result = results.get(address);
  return result instanceof HostError ? undefined : result;
}

const none: ManifestVersion = { generation: 0, listVersion: 0, desiredGeneration: 0 };

export function reportOf(findings: Findings): SlurmReport {
  const { settings, loginNodes, results, controllerFacts, hosts } = findings;
  const { controller, settled } = controllerFacts;
  const version = versionInForce(findings);
  const { numbers, disagreements } = directoryNumbers(findings);
  const failure = faults(findings, disagreements);
  const storage = storageOf(findings);
  const isAway = results.get(hosts[0]?.address ?? '') instanceof HostError;
  const isSilent = hosts.every(({ address }) => results.get(address) instanceof HostError);
  const waiting = waitingHosts(findings);
  // While the controller is away, its last jobs are outdated. If no host answers, the whole report keeps its old time.
  const queue = isAway && !isSilent ? undefined : controller;
  return {
    manifestGeneration: version.generation,
    desiredGeneration: settled?.desiredGeneration ?? 0,
    listVersion: version.listVersion,
    controlPlaneReady: !isAway && (controller?.up ?? false),
    scheduler: { configured: 'sunk', ready: condition(findings, failure) },
    ...(storage ? { storage } : {}),
    // While the controller is away, its last report of them is outdated.
    machines: isAway ? undefined : machines(findings),
    ...present({
      runningJobs: queue?.jobs,
      pendingJobs: queue?.pendingJobs,
      moreJobs: queue?.moreJobs,
      jobsArePrivate: controller?.jobsArePrivate,
      usageIsPrivate: controller?.usageIsPrivate,
      gpuDays: controller?.accounting && findings.gpuDays,
      limits: controller?.accounting?.limits,
    }),
    loginMode: settings.loginMode ?? 'Shared',
    loginNodes: loginNodes.map((node) => loginNode(node, findings, version)),
    accounts: blockedAccounts(findings),
    numbers,
    blocked: [...blockedPeople(findings), ...disagreements].slice(0, mostBlocked),
    failure,
    ...(isAway && { silent: isSilent ? ('all' as const) : ('controller' as const) }),
    waiting,
    jobLogins: lacksForJobs(findings),
    ...(hasDrifted(findings, version) ? { drifted: true as const } : {}),
  };
}

/** Reasons why people cannot log in to running jobs on hosts; the same reason on several hosts is one message. */
function lacksForJobs({ hosts, results }: Findings): string[] {
  const lacks = new Map<string, string[]>();
  for (const host of hosts) {
    const facts = results.get(host.address);
    if (facts instanceof HostError) continue;
    for (const lack of facts?.jobLogins ?? []) lacks.set(lack, [...(lacks.get(lack) ?? []), nameOf(host)]);
  }
  return [...lacks].map(([lack, names]) => {
    const more = names.length > maxMessages ? ` and ${names.length - maxMessages} more` : '';
    return `${names.slice(0, maxMessages).join(', ')}${more}: ${lack}`;
  });
}

/**
 * The version that people can rely on: the newest that both the controller and a login node have. During a change: the oldest
 * of the controller and the login nodes that were up.
 */
function versionInForce(findings: Findings): ManifestVersion {
  const { loginNodes, controllerFacts, isApplying, wereUp } = findings;
  const versions = loginNodes
    .filter(({ name }) => !isApplying || wereUp.has(name))
    .flatMap(({ address }) => factsAt(findings, address) ?? [])
    .map(({ settled = none }) => settled)
    .sort((a, b) => a.generation - b.generation);
  const controller = controllerFacts.settled ?? none;
  const login = isApplying ? versions[0] : versions.at(-1);
  return login === undefined || controller.generation <= login.generation ? controller : login;
}

/**
 * A login node that comes back with an old version counts as down until it has the new one. One that was up counts as down after
 * two failed connections in a row, not one: an sshd refuses connections when many come at once.
 */
function loginNode(node: LoginNode, findings: Findings, version: ManifestVersion): LoginNodeReport {
  const { name, address, host, port, hostKey, via, username } = node;
  const result = findings.results.get(address);
  const wasUp = findings.wereUp.has(name);
  const silent = findings.silent.get(name) ?? 0;
  const failed = result instanceof HostError && result.isUnreachable ? result.inARow : silent;
  const missed = failed === 1 && wasUp;
  const facts = silent > 0 ? undefined : factsAt(findings, address);
  const isCurrent = (facts?.settled?.generation ?? 0) >= version.generation;
  const up = missed || (facts !== undefined && (wasUp || isCurrent));
  return {
    ...{ name, host, port, hostKey, up },
    ...(missed && { missed }),
    // An outdated login node may still have the old shell.
    ...present({ via, missingShells: isCurrent ? facts?.missingShells : undefined }),
    ...(username === undefined ? {} : { username }),
  };
}

function machines(findings: Findings): MachineReport[] | undefined {
  const speeds = new Map<string, string>();
  for (const { address, nodes } of findings.hosts) {
    const ibSpeed = factsAt(findings, address)?.ibSpeed;
    if (ibSpeed !== undefined) for (const node of nodes) speeds.set(node, ibSpeed);
  }
  return findings.controllerFacts.controller?.machines?.map((machine) => {
    const ibSpeed = speeds.get(machine.name);
    return ibSpeed === undefined ? machine : { ...machine, ibSpeed };
  });
}

function condition(
  { hosts, results, controllerFacts, progress }: Findings,
  failure: string | null,
): ConditionReport {
  const { controller, refused, settled } = controllerFacts;
  const away = results.get(hosts[0]?.address ?? '');
  if (away instanceof HostError) {
    return {
      status: 'Unknown',
      reason: away.isUnreachable ? 'ControllerUnreachable' : 'ControllerRefuses',
      message: away.message,
    };
  }
  if (refused) {
    const { desiredGeneration: observedGeneration, message } = refused;
    return { status: 'False', observedGeneration, reason: 'ConfigurationRejected', message };
  }
  if (!controller?.up) {
    return {
      status: 'False',
      reason: 'ControllerDown',
      message: `slurmctld does not answer. ${controller?.message ?? ''}`.trim(),
    };
  }
  if (controller.accounting?.up === false) {
    return {
      status: 'False',
      reason: 'AccountingDown',
      message: `slurmdbd does not answer. ${controller.accounting.message}`.trim(),
    };
  }
  if (!settled) return { status: 'False', reason: 'Provisioning', message: 'Nothing has been applied yet.' };
  // The scheduler works; the fault may concern only some people or hosts.
  const message = [progress, failure].filter((part) => part != null).join(' ');
  return { status: 'True', reason: 'Ready', ...(message === '' ? {} : { message }) };
}

const maxMessages = 8;

/** Faults that a person must mend, as one message. An unreachable host or slurmdbd comes back by itself and is left out. */
function faults(findings: Findings, disagreements: readonly BlockedPerson[]): string | null {
  const { hosts, results, problems, controllerFacts, left } = findings;
  const found: string[] = [...left, ...disagreements.map(({ message }) => message), ...hopFaults(findings)];
  for (const { address } of hosts) {
    const result = results.get(address);
    if (result instanceof HostError) {
      if (!result.isUnreachable && !result.hop) found.push(result.message);
      continue;
    }
    const { conflicts = [], faults = [], refused } = result ?? {};
    const messages = [...conflicts.map(({ message }) => message), ...faults];
    found.push(...messages.map((message) => `${address}: ${message}`));
    if (refused) found.push(`The Slurm configuration was not taken: ${refused.message}`);
    const isDown = controllerFacts.controller?.accounting?.up === false;
    for (const { kind, message } of problems.get(address) ?? []) {
      if (kind !== 'unanswered' && (kind !== 'accounting' || !isDown)) found.push(`${address}: ${message}`);
    }
  }
  if (found.length === 0) return null;
  const more = found.length > maxMessages ? `; and ${found.length - maxMessages} more` : '';
  return found.slice(0, maxMessages).join('; ') + more;
}

/** Faults of hops that a person must mend, each as one message about all hosts behind it. */
function hopFaults({ hosts, results }: Findings): string[] {
  const behind = hosts.flatMap((host) => {
    const result = results.get(host.address);
    const hop = result instanceof HostError && !result.isUnreachable ? result.hop : undefined;
    return hop ? [{ name: nameOf(host), hop }] : [];
  });
  const faults = Map.groupBy(behind, ({ hop }) => hop.message);
  return [...faults.values()].flatMap((hosts) => {
    const [first] = hosts;
    const names = hosts.map(({ name }) => name);
    return first ? unaskedText(names, first.hop) : [];
  });
}

/** Whether people can log in only if the host has their account or home. */
function isForAccess({ roles }: Host): boolean {
  return roles.has('login') || roles.has('controller') || roles.has('homes');
}

/** People who cannot log in because the controller, a login node or the server of homes cannot create their account or home, or lacks it at this moment. */
function blockedAccounts(findings: Findings): AccountReport[] {
  const blocked = new Set<string>();
  for (const { address } of findings.hosts.filter(isForAccess)) {
    const { conflicts = [], absent = [] } = factsAt(findings, address) ?? {};
    for (const { userId } of conflicts) blocked.add(userId);
    for (const userId of absent) blocked.add(userId);
  }
  return [...blocked].sort().map((userId) => ({
    userId,
    shell: '',
    loginState: 'waiting_for_key',
    keySetGeneration: 0,
    keyFingerprints: [],
  }));
}

/** The report is stored and read whole. */
const mostBlocked = 200;

function blockedPeople(findings: Findings): BlockedPerson[] {
  return findings.hosts.filter(isForAccess).flatMap((host) => {
    const { conflicts = [] } = factsAt(findings, host.address) ?? {};
    return conflicts.map(({ userId, message }) => ({ userId, host: nameOf(host), message }));
  });
}

/**
 * The numbers that directories have for people without one, where the hosts that decide agree, and the faults where they do not. Login nodes
 * and the controller decide, and where both ask a directory, both have to: people may become root on another host, and say any number there.
 */
function directoryNumbers(findings: Findings) {
  const deciding = findings.hosts.filter(
    ({ roles, accounts }) => accounts === 'directory' && (roles.has('login') || roles.has('controller')),
  );
  const needed = (['login', 'controller'] as const).filter((role) =>
    deciding.some(({ roles }) => roles.has(role)),
  );
  const all = deciding.flatMap((host) => {
    const { numbers = [] } = factsAt(findings, host.address) ?? {};
    return numbers.map((number) => ({ ...number, host: nameOf(host), roles: host.roles }));
  });
  const numbers: DirectoryNumber[] = [];
  const disagreements: BlockedPerson[] = [];
  for (const [userId, found] of Map.groupBy(all, (one) => one.userId)) {
    const [first] = found;
    if (!first) continue;
    const message = numberFault(first, found);
    if (message !== undefined) disagreements.push({ userId, host: first.host, message });
    else if (needed.every((role) => found.some(({ roles }) => roles.has(role))))
      numbers.push({ userId, uid: first.uid, gid: first.gid });
  }
  return { numbers, disagreements };
}

type FoundNumber = Facts['numbers'][number] & { host: string };

const isNumber = (id: number) => Number.isInteger(id) && id >= 1 && id < 2 ** 31;

function numberFault(first: FoundNumber, found: readonly FoundNumber[]): string | undefined {
  const text = ({ uid, gid }: FoundNumber) => `the uid ${uid} and the gid ${gid}`;
  const unfit = found.find(({ uid, gid }) => !isNumber(uid) || !isNumber(gid));
  if (unfit) return `${unfit.host} has ${text(unfit)} for ${unfit.username}, which no person can have`;
  const other = found.find(({ uid, gid }) => uid !== first.uid || gid !== first.gid);
  return (
    other && `${first.host} has ${text(first)} for ${first.username}, and ${other.host} has ${text(other)}`
  );
}

/**
 * Hosts without the last applied list, or else the newest list that a host has; the oldest versions first. A person's own
 * login node that is away and was never changed is left out: it has no account, and may not be created yet.
 */
function waitingHosts(findings: Findings): WaitingHost[] {
  const { hosts, loginNodes, results, confirmed, managed, wantedGeneration } = findings;
  const isUnmade = (address: string) =>
    !managed.has(address) &&
    results.get(address) instanceof HostError &&
    loginNodes.some((node) => node.address === address && node.username !== undefined);
  const newest =
    wantedGeneration || Math.max(0, ...[...confirmed.values()].map(({ generation }) => generation));
  return hosts
    .filter(({ address }) => !isUnmade(address))
    .map((host) => ({ host, has: confirmed.get(host.address) ?? none }))
    .filter(({ has }) => has.generation !== newest)
    .sort((a, b) => a.has.generation - b.has.generation)
    .slice(0, mostWaiting)
    .map(({ host, has: { generation, listVersion } }) => ({
      host: nameOf(host),
      ...(generation > 0 && { generation, listVersion }),
      message: whyWaiting(host, findings),
    }));
}

function whyWaiting({ address }: Host, { results, problems }: Findings): string {
  const result = results.get(address);
  if (!result) return `${address} has not answered yet.`;
  // The same text for all hosts behind a hop, which lets them be named together.
  if (result instanceof HostError) return result.hop ? unaskedText(['It'], result.hop) : result.message;
  const [problem] = problems.get(address) ?? [];
  if (problem) return `${address}: ${problem.message}`;
  if (result.owed.length > 0) return `${address} has restarts before it: ${result.owed.join(', ')}.`;
  return `${address} answers, and has not taken it yet.`;
}

/** Whether a host that answers differs from the wanted state, so that applying again is needed. */
function hasDrifted(findings: Findings, version: ManifestVersion): boolean {
  const isBehind = ({ drift, owed, settled = none }: Facts) =>
    drift.length > 0 || owed.length > 0 || settled.generation !== version.generation;
  const answering = findings.hosts.flatMap(({ address }) => factsAt(findings, address) ?? []);
  return findings.isCleaningDue || answering.some(isBehind);
}

/** The storage type, by the file system of `/home` on the login nodes. */
function storageOf(findings: Findings): StorageReport | undefined {
  const homes = findings.loginNodes.map(({ address }) => factsAt(findings, address)?.home);
  const home = homes.find((one) => one);
  if (!home) return undefined;
  const types = { ceph: home === 'ceph', weka: /weka/.test(home), nfs: /^nfs/.test(home) };
  return types.ceph || types.nfs ? { ...types, ready: { status: 'True', reason: 'Mounted' } } : types;
}
