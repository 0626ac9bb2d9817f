/** What a manifest asks of a host, as rows of data for its script. */
import { createHash } from 'node:crypto';
import type { Manifest, ManifestAccount } from '../../../domain/manifest.ts';
import { type RestartPlan, restartPlan } from '../../../domain/restart-plan.ts';
import type { SlurmConfiguration } from '../../../domain/slurm-configuration.ts';
import {
  defaultSlurmCommands,
  defaultSlurmConfigFile,
  type SlurmSettings,
} from '../../../domain/slurm-settings.ts';
import type { Facts } from './facts.ts';
import type { Host, Role } from './hosts.ts';
import { base64, type Row } from './script.ts';

/** What every script of a cluster is about. */
export interface ScriptScope {
  clusterId: string;
  /** The Slurm account that people's associations are in. */
  organization: string;
  settings: SlurmSettings;
  /**
   * Higher than what any server had that looked after this cluster before: hosts take no change with a lower one. Undefined
   * where there is one server only.
   */
  fence?: number | undefined;
}

/** What every script begins with: its cluster and its host. */
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
    ...[...host.roles].map((role): Row => ['role', role]),
  ];
}

/** A person without an active key has no usable account. A shell that a passwd file cannot hold is not written there. */
export function accountRows(accounts: readonly ManifestAccount[]): Row[] {
  return accounts
    .filter(({ loginState }) => loginState === 'ready')
    .map(({ username, uid, userId, shell }) => {
      return ['account', username, uid, userId, /^\/[A-Za-z0-9_/.+-]+$/.test(shell) ? shell : '/bin/bash'];
    });
}

/** The lines that belong into each file, from the fields made for it, and scripts. Prolog and epilog stay in place. */
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

export function scriptRows({ prolog, epilog }: SlurmConfiguration): Row[] {
  return [...fileRows('prolog', prolog), ...fileRows('epilog', epilog)];
}

function fileRows(kind: string, files: Readonly<Record<string, string | undefined>> = {}): Row[] {
  return Object.entries(files).flatMap(([name, text]): Row[] =>
    text === undefined ? [] : [['file', kind, name, base64(text)]],
  );
}

/** A digest of each field that is set. The order in which files are named means nothing. */
export function fieldDigests(configuration: SlurmConfiguration): Record<string, string> {
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
  configuration: RestartPlan;
}

/** The plan for a host by the contract's rules, from what is there and what should be. */
export function planHost(facts: Facts, manifest: Manifest): HostPlan {
  // Someone whose account the host cannot make is neither added nor removed.
  const blocked = new Set(facts.conflicts.map(({ username }) => username));
  const before = facts.logins
    .filter((username) => !blocked.has(username))
    .map((username) => ({ username, loginState: 'ready' as const }));
  const after = manifest.accounts.filter(({ username }) => !blocked.has(username));
  const configuration = {
    before: facts.fields as SlurmConfiguration,
    after: fieldDigests(manifest.slurmConfiguration) as SlurmConfiguration,
  };
  return { accounts: restartPlan(before, after), configuration: restartPlan([], [], configuration) };
}

/** The restarts of a plan that concern a host, as it notes them. With `live`, none. */
export function oweRows(settings: SlurmSettings, host: Host, plan: RestartPlan, why: keyof HostPlan): Row[] {
  if (settings.rollout === 'live') return [];
  return plan.restarts
    .filter((role) => host.roles.has(role))
    .flatMap((role) => (role === 'compute' ? host.nodes.map((node) => `compute ${node}`) : [role]))
    .map((owed) => ['owe', why, owed]);
}

export function versionRow({ generation, listVersion, desiredGeneration }: Manifest): Row {
  return ['version', generation, listVersion, desiredGeneration];
}

/** The commands for the restarts that a host may still need, in the order in which they run. */
export function stepRows(settings: SlurmSettings, wanted: readonly (Role | 'reload')[], node = ''): Row[] {
  const commands = { ...defaultSlurmCommands, ...settings.commands };
  const of = {
    accounting: commands.restartAccounting,
    controller: commands.restartController,
    reload: commands.restartController,
    login: commands.restartLogin,
    compute: commands.restartCompute.replaceAll('{name}', node),
  };
  return wanted.map((role) => ['step', role, role === 'compute' ? node : '-', base64(of[role])]);
}
