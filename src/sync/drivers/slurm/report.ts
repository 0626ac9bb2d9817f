/** What a Slurm cluster says of itself, put together from what its hosts said. */
import type {
  AccountReport,
  ConditionReport,
  LoginNodeReport,
  SlurmReport,
  StorageReport,
} from '../../../domain/manifest.ts';
import type { SlurmSettings } from '../../../domain/slurm-settings.ts';
import type { Facts, Version } from './facts.ts';
import type { Host, LoginPlace } from './hosts.ts';
import { HostError } from './shell.ts';

export interface Findings {
  settings: SlurmSettings;
  hosts: readonly Host[];
  places: readonly LoginPlace[];
  /** By address: what each host said last, or why it did not. */
  facts: ReadonlyMap<string, Facts | HostError>;
  /** By address: what went wrong there when something was last applied. */
  problems: ReadonlyMap<string, Facts['problems']>;
  /** What the controller said when it last answered. */
  controllerFacts: Facts;
  /** Something is being applied: hosts are one step apart. */
  isApplying: boolean;
  /** In words, how far that has come. */
  progress: string | undefined;
  /** In words, hosts that were left behind. */
  left: readonly string[];
  /** There is one among them that can be cleaned. */
  isCleaningDue: boolean;
  /** By name: the login nodes that were up in the last report. */
  wereUp: ReadonlySet<string>;
}

const none: Version = { generation: 0, listVersion: 0, desiredGeneration: 0 };

export function reportOf(findings: Findings): SlurmReport {
  const { settings, places, facts, controllerFacts, hosts } = findings;
  const { controller, settled } = controllerFacts;
  const version = versionInForce(findings);
  const failure = faults(findings);
  const storage = storageOf(findings);
  const isAway = facts.get(hosts[0]?.address ?? '') instanceof HostError;
  return {
    manifestGeneration: version.generation,
    desiredGeneration: settled?.desiredGeneration ?? 0,
    listVersion: version.listVersion,
    controlPlaneReady: !isAway && (controller?.up ?? false),
    scheduler: { configured: 'sunk', ready: condition(findings, failure) },
    ...(storage ? { storage } : {}),
    machines: machines(findings, isAway),
    runningJobs: controller?.jobs ?? [],
    loginMode: settings.loginMode ?? 'Shared',
    loginNodes: places.map((place) => loginNode(place, findings, version)),
    accounts: blockedAccounts(findings),
    failure,
    ...(hasDrifted(findings, version) ? { drifted: true as const } : {}),
  };
}

/**
 * What people can rely on: the newest that both the controller and a login node have; while something is being applied,
 * what all login nodes that were up have.
 */
function versionInForce({ places, facts, controllerFacts, isApplying, wereUp }: Findings): Version {
  const versions = places
    .filter(({ name }) => !isApplying || wereUp.has(name))
    .map(({ address }) => facts.get(address))
    .flatMap((said) => (said && !(said instanceof HostError) ? [said.settled ?? none] : []))
    .sort((a, b) => a.generation - b.generation);
  const controller = controllerFacts.settled ?? none;
  const login = isApplying ? versions[0] : versions.at(-1);
  return login === undefined || controller.generation <= login.generation ? controller : login;
}

/** One that comes back and is behind lets nobody in until it has caught up; one that was up keeps its sessions. */
function loginNode(place: LoginPlace, { facts, wereUp }: Findings, version: Version): LoginNodeReport {
  const { name, address, host, port, hostKey, username } = place;
  const said = facts.get(address);
  const isThere = said !== undefined && !(said instanceof HostError);
  const up = isThere && (wereUp.has(name) || (said.settled?.generation ?? 0) >= version.generation);
  return { name, host, port, hostKey, up, ...(username === undefined ? {} : { username }) };
}

function machines({ hosts, facts, controllerFacts }: Findings, isAway: boolean): SlurmReport['machines'] {
  const speeds = new Map<string, string>();
  for (const { address, nodes } of hosts) {
    const said = facts.get(address);
    if (!said || said instanceof HostError || said.ibSpeed === undefined) continue;
    for (const node of nodes) speeds.set(node, said.ibSpeed);
  }
  return (controllerFacts.controller?.machines ?? []).map((machine) => {
    const ibSpeed = speeds.get(machine.name);
    return { ...machine, ready: machine.ready && !isAway, ...(ibSpeed === undefined ? {} : { ibSpeed }) };
  });
}

function condition(
  { hosts, facts, controllerFacts, progress }: Findings,
  failure: string | null,
): ConditionReport {
  const { controller, refused, settled } = controllerFacts;
  const away = facts.get(hosts[0]?.address ?? '');
  if (away instanceof HostError) {
    return {
      status: 'Unknown',
      reason: away.away ? 'ControllerUnreachable' : 'ControllerRefuses',
      message: away.message,
    };
  }
  if (refused) {
    const { desiredGeneration: observedGeneration, words } = refused;
    return { status: 'False', observedGeneration, reason: 'ConfigurationRejected', message: words };
  }
  if (!controller?.up) {
    return {
      status: 'False',
      reason: 'ControllerDown',
      message: `slurmctld does not answer. ${controller?.words ?? ''}`.trim(),
    };
  }
  if (controller.accounting?.up === false) {
    return {
      status: 'False',
      reason: 'AccountingDown',
      message: `slurmdbd does not answer. ${controller.accounting.words}`.trim(),
    };
  }
  if (!settled) return { status: 'False', reason: 'Provisioning', message: 'Nothing has been applied yet.' };
  // It works; what does not may be about some people or hosts only.
  const message = [progress, failure].filter((words) => words != null).join(' ');
  return { status: 'True', reason: 'Ready', ...(message === '' ? {} : { message }) };
}

const mostWords = 8;

/** In words, what a person must mend. A host that is away, or a slurmdbd that is down, comes back by itself. */
function faults({ hosts, facts, problems, controllerFacts, left }: Findings): string | null {
  const found: string[] = [...left];
  for (const { address } of hosts) {
    const said = facts.get(address);
    if (said instanceof HostError) {
      if (!said.away) found.push(said.message);
      continue;
    }
    const { conflicts = [], refused } = said ?? {};
    found.push(...conflicts.map(({ words }) => `${address}: ${words}`));
    if (refused) found.push(`The Slurm configuration was not taken: ${refused.words}`);
    const isDown = controllerFacts.controller?.accounting?.up === false;
    for (const { kind, words } of problems.get(address) ?? []) {
      if (kind !== 'accounting' || !isDown) found.push(`${address}: ${words}`);
    }
  }
  if (found.length === 0) return null;
  const more = found.length > mostWords ? `; and ${found.length - mostWords} more` : '';
  return found.slice(0, mostWords).join('; ') + more;
}

/** Whom the controller or a login node cannot take, or has not at this moment, has no account to log in to. */
function blockedAccounts({ hosts, facts }: Findings): AccountReport[] {
  const blocked = new Set<string>();
  for (const { address, roles } of hosts) {
    const said = facts.get(address);
    if (!said || said instanceof HostError || !(roles.has('login') || roles.has('controller'))) continue;
    for (const { userId } of said.conflicts) blocked.add(userId);
    for (const userId of said.absent) blocked.add(userId);
  }
  return [...blocked].sort().map((userId) => ({
    userId,
    shell: '',
    loginState: 'waiting_for_key',
    keySetGeneration: 0,
    keyFingerprints: [],
  }));
}

/** Whether a host that answers is not as it should be: applying again mends it. */
function hasDrifted({ hosts, facts, isCleaningDue }: Findings, version: Version): boolean {
  return (
    isCleaningDue ||
    hosts.some(({ address }) => {
      const said = facts.get(address);
      if (!said || said instanceof HostError) return false;
      return (
        said.drift.length > 0 ||
        said.owed.length > 0 ||
        (said.settled?.generation ?? 0) !== version.generation
      );
    })
  );
}

/** As the file system of `/home` on the login nodes tells. */
function storageOf({ places, facts }: Findings): StorageReport | undefined {
  for (const { address } of places) {
    const said = facts.get(address);
    if (!said || said instanceof HostError || said.home === undefined || said.home === '') continue;
    const types = { ceph: said.home === 'ceph', weka: /weka/.test(said.home), nfs: /^nfs/.test(said.home) };
    return types.ceph || types.nfs ? { ...types, ready: { status: 'True', reason: 'Mounted' } } : types;
  }
  return undefined;
}
