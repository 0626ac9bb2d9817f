/** Converts a manifest into the rows of data for a host's script. */
import { createHash } from 'node:crypto';
import type { ReleasedAccounts } from '../../domain/access/adopted.ts';
import type { Manifest, ManifestAccount } from '../../domain/access/manifest.ts';
import { limitsOf, type SlurmLimits } from '../../domain/slurm/accounting.ts';
import type { SlurmConfiguration } from '../../domain/slurm/configuration.ts';
import { sshPort } from '../../domain/slurm/hop.ts';
import { type RestartPlan, restartPlan } from '../../domain/slurm/restart-plan.ts';
import {
  defaultSlurmCommands,
  defaultSlurmConfigFile,
  type SlurmSettings,
} from '../../domain/slurm/settings.ts';
import type { Facts } from './facts.ts';
import type { Host, Role } from './hosts.ts';
import { base64, type Row } from './script.ts';

export interface ScriptScope {
  clusterId: string;
  organization: string;
  settings: SlurmSettings;
  /**
   * Fencing token, higher than that of any earlier leader of this cluster: hosts refuse changes with a lower one. Undefined
   * when there is only one server.
   */
  fence?: number | undefined;
}

/** The rows that every script begins with: cluster, host, and accounting settings. */
export function hostRows(
  { clusterId, organization, settings, fence }: ScriptScope,
  host: Host,
  action: string,
): Row[] {
  return [
    ...(fence === undefined ? [] : [['fence', fence] as const]),
    ['id', clusterId],
    ['action', action],
    ['config', settings.configFile ?? defaultSlurmConfigFile],
    ['organization', organization],
    ['slurm-account', settings.accounting?.account ?? organization],
    ...accountingRows(settings.accounting),
    ...homeRows(settings, host),
    ...(settings.adoptPrivileged ?? []).map((username): Row => ['may-be-root', username]),
    ...[...host.roles].map((role): Row => ['role', role]),
    ...(host.roles.size > 0 ? [['accounts', host.accounts ?? 'files'] as const] : []),
  ];
}

/** The directory in which the host makes homes, `-` for none, and the site's command for it; without rows, it makes them in /home. */
function homeRows({ homes, commands }: SlurmSettings, { roles }: Host): Row[] {
  const makeHome = commands?.makeHome;
  if (!homes && makeHome === undefined) return [];
  if (!roles.has(homes ? 'homes' : 'controller')) return [['homes', '-']];
  return [
    ...(homes ? [['homes', homes.path] as const] : []),
    ...(makeHome === undefined ? [] : [['make-home', base64(makeHome)] as const]),
  ];
}

/**
 * A person without an active key has no usable account, and keeps an existing association. A shell path that a passwd file
 * cannot hold is replaced by /bin/bash. On a server that only has homes, accounts give numbers their groups, and get no shell.
 * A number that a directory has yet to give (0) makes no account in files.
 */
export function accountRows(
  accounts: readonly ManifestAccount[],
  host: Pick<Host, 'roles' | 'accounts'>,
): Row[] {
  const isServer = host.roles.has('homes') && host.roles.size === 1;
  const adoption = ({ isAdopted }: ManifestAccount) => {
    if (host.accounts === 'copied') return 'copied';
    return isAdopted ? 'adopt' : '';
  };
  return accounts.map((account) => {
    const { username, uid, gid, userId, shell, loginState } = account;
    if (loginState !== 'ready' || (uid === 0 && host.accounts !== 'directory')) return ['member', username];
    const usable = /^\/[A-Za-z0-9_/.+-]+$/.test(shell) ? shell : '/bin/bash';
    const set = isServer ? '/usr/sbin/nologin' : usable;
    return ['account', username, uid, userId, set, gid, adoption(account)];
  });
}

/** Adopted accounts that must be locked, also on a host that lost its notes. */
export function formerRows(former: ReleasedAccounts['former'] = []): Row[] {
  return former.map(({ username, uid, gid, isPrivileged }) => {
    return ['former', username, uid, gid, isPrivileged ? 'privileged' : ''];
  });
}

/** A host that is released gives adopted accounts back, and locks those of people who left. */
export function releasedRows({ handBack = [], former }: ReleasedAccounts): Row[] {
  return [...formerRows(former), ...handBack.map((username): Row => ['hand-back', username])];
}

/** The groups with their members who have an account. */
export function groupRows({ groups = [], accounts }: Pick<Manifest, 'groups' | 'accounts'>): Row[] {
  const ready = accounts.filter(({ loginState }) => loginState === 'ready');
  const names = new Set(ready.map(({ username }) => username));
  return groups.map(({ name, gid, members }) => {
    return ['group', name, gid, members.filter((member) => names.has(member)).join(',')];
  });
}

/** The settings of the Slurm account, and a digest of the limits: when the digest changes, the limits are applied. */
function accountingRows(accounting: SlurmSettings['accounting']): Row[] {
  if (accounting === undefined) return [];
  const { account, parent, roles, coordinators } = accounting;
  const asked = [limitsOf(accounting), limitsOf(roles?.admin ?? {}), coordinators ?? ''];
  const isSet = asked.some((one) => Object.keys(one).length > 0);
  return [
    ...(account === undefined ? [] : [['account-of', 'site'] as const]),
    ...(parent === undefined ? [] : [['account-parent', parent] as const]),
    ...(isSet ? [['limits', createHash('sha256').update(JSON.stringify(asked)).digest('hex')] as const] : []),
  ];
}

/** The limits of the account (entity `.`) and of administrators, and the account's coordinators. */
export function limitRows({ accounting }: SlurmSettings, accounts: readonly ManifestAccount[]): Row[] {
  if (accounting === undefined) return [];
  const admins = accounts.filter(({ isAdmin }) => isAdmin).map(({ username }) => username);
  const rows = (entity: string, limits: SlurmLimits): Row[] =>
    Object.entries(limitsOf(limits)).map(([name, value]) => ['limit', entity, name, value]);
  return [
    ...rows('.', accounting),
    ...admins.flatMap((username) => rows(username, accounting.roles?.admin ?? {})),
    ...(accounting.coordinators ? admins : []).map((username): Row => ['coordinator', username]),
  ];
}

/** The block of lines for each configuration file, and the files that belong to it. Prolog and epilog: see `scriptRows`. */
export function configurationRows(settings: SlurmSettings, configuration: SlurmConfiguration): Row[] {
  const directory = (settings.configFile ?? defaultSlurmConfigFile).replace(/\/[^/]*$/, '');
  const { slurmPartitions, slurmExtraConfig, cgroupExtraConfig, gresConf, prolog, epilog } = configuration;
  const slurm = [
    slurmPartitions,
    slurmExtraConfig,
    prolog && `Prolog=${directory}/andromeda/prolog.d/*`,
    epilog && `Epilog=${directory}/andromeda/epilog.d/*`,
  ];
  const blocks = { 'slurm.conf': slurm, 'cgroup.conf': [cgroupExtraConfig], 'gres.conf': [gresConf] };
  return [
    ...Object.entries(blocks).map(([name, texts]): Row => {
      const lines = texts.filter((text) => text?.trim()).map((text) => `${text?.trimEnd()}\n`);
      return ['block', name, base64(lines.join(''))];
    }),
    ...fileRows('etc', configuration.controllerEtc),
    ...fileRows('start', { login: configuration.loginS6Packages, compute: configuration.computeS6Packages }),
    ...Object.entries(fieldDigests(configuration)).map(([name, digest]): Row => ['field', name, digest]),
  ];
}

/** The gateway's address, as people log in to it, and the page on which they register a key. */
export interface Gateway {
  hostname: string;
  port: number;
  url: string;
}

/** The list of direct logins: name, last day, and what the person is to do from now on. */
export function directRows({ clusterId, direct }: Manifest, { hostname, port, url }: Gateway): Row[] {
  const { until = '', people = [], services = [] } = direct ?? {};
  const at = port === sshPort ? '' : `-p ${port} `;
  const say = (name: string) =>
    `Direct logins end after ${until}. From now on register an SSH key at ${url} and use: ssh ${at}${clusterId}.${name}@${hostname}`;
  return [
    ...people.map((name): Row => ['direct', name, until, say(name)]),
    ...services.map((name): Row => ['direct', name, 'always']),
  ];
}

export function scriptRows({ prolog, epilog }: SlurmConfiguration): Row[] {
  return [...fileRows('prolog', prolog), ...fileRows('epilog', epilog)];
}

function fileRows(kind: string, files: Readonly<Record<string, string | undefined>> = {}): Row[] {
  return Object.entries(files).flatMap(([name, text]): Row[] =>
    text === undefined ? [] : [['file', kind, name, base64(text)]],
  );
}

/** A digest of each field that is set. The order of files in a field does not matter. */
function fieldDigests(configuration: SlurmConfiguration): Record<string, string> {
  return Object.fromEntries(
    Object.entries(configuration).map(([name, value]) => {
      const entries =
        typeof value === 'string' ? value : Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
      return [name, createHash('sha256').update(JSON.stringify(entries)).digest('hex')];
    }),
  );
}

export interface HostPlan {
  accounts: RestartPlan;
  /** As `accounts`, for a host that has to make an account where it would have adopted one. */
  made: RestartPlan;
  configuration: RestartPlan;
}

/** The restarts that a host needs by the contract's rules, from its facts and the manifest. */
export function planHost(facts: Facts, manifest: Manifest): HostPlan {
  // An account that the host cannot create is neither added nor removed.
  const blocked = new Set(facts.conflicts.map(({ username }) => username));
  const before = facts.logins
    .filter((username) => !blocked.has(username))
    .map((username) => ({ username, loginState: 'ready' as const }));
  const after = manifest.accounts.filter(({ username, uid }) => uid > 0 && !blocked.has(username));
  const configuration = {
    before: facts.fields as SlurmConfiguration,
    after: fieldDigests(manifest.slurmConfiguration) as SlurmConfiguration,
  };
  const made = after.map(({ isAdopted: _, ...account }) => account);
  return {
    accounts: restartPlan(before, after),
    made: restartPlan(before, made),
    configuration: restartPlan([], [], configuration),
  };
}

/**
 * The plan's restarts that concern a host, as rows that it records. None with the rollout `live`, as they end sessions or jobs; and
 * none for people from a directory, as no account is added or removed.
 */
export function oweRows(settings: SlurmSettings, host: Host, plan: RestartPlan, why: keyof HostPlan): Row[] {
  if (settings.rollout === 'live' || (why !== 'configuration' && host.accounts === 'directory')) return [];
  return plan.restarts
    .filter((role) => host.roles.has(role))
    .flatMap((role) => (role === 'compute' ? host.nodes.map((node) => `compute ${node}`) : [role]))
    .map((owed) => ['owe', why, owed]);
}

export function versionRow({ generation, listVersion, desiredGeneration }: Manifest): Row {
  return ['version', generation, listVersion, desiredGeneration];
}

/** Whether slurmd reads a field that differs between host and manifest: then slurmd restarts, and jobs go on. */
export function isForSlurmd({ fields }: Facts, { slurmConfiguration }: Manifest): boolean {
  const after = fieldDigests(slurmConfiguration);
  const differs = (name: keyof SlurmConfiguration) => fields[name] !== after[name];
  const appears = (name: 'prolog' | 'epilog') => (fields[name] === undefined) !== (after[name] === undefined);
  const files = ['slurmExtraConfig', 'cgroupExtraConfig', 'gresConf', 'controllerEtc'] as const;
  return files.some(differs) || appears('prolog') || appears('epilog');
}

/**
 * A restart that a host may still owe: `compute` ends jobs, `slurmd` does not; `reload` restarts the controller for another
 * configuration.
 */
export type Step = Exclude<Role, 'homes'> | 'reload' | 'slurmd';

/** The commands for these restarts, in the order in which they run. */
export function stepRows(settings: SlurmSettings, wanted: readonly Step[], node = '-'): Row[] {
  const commands = { ...defaultSlurmCommands, ...settings.commands };
  const of = {
    accounting: commands.restartAccounting,
    controller: commands.restartController,
    reload: commands.restartController,
    login: commands.restartLogin,
    compute: commands.restartCompute.replaceAll('{name}', node),
    slurmd: commands.restartCompute.replaceAll('{name}', node),
  };
  return wanted.map((role) => ['step', role, node, base64(of[role])]);
}

export function nodeStepRows(settings: SlurmSettings, { nodes }: Host): Row[] {
  return nodes.flatMap((node) => stepRows(settings, ['compute', 'slurmd'], node));
}
