/** What a pass that applies a manifest knows of each host, and the rows of data that the host gets from it. */
import type { Manifest } from '../../domain/access/manifest.ts';
import type { SlurmCluster } from './cluster.ts';
import {
  accountRows,
  configurationRows,
  isForSlurmd,
  limitRows,
  oweRows,
  planHost,
  scriptRows,
  versionRow,
} from './desired.ts';
import type { Facts } from './facts.ts';
import type { Host } from './hosts.ts';
import type { Row } from './script.ts';

export interface Pass {
  cluster: SlurmCluster;
  manifest: Manifest;
  signal: AbortSignal;
  superseded: AbortSignal | undefined;
}

/** Whether the host has the configuration that is wanted; the others get it once the controller has accepted it. */
export function isConfigured({ manifest }: Pass, facts: Facts): boolean {
  return planHost(facts, manifest).configuration.restarts.length === 0;
}

/** Whether the controller has a configuration that is not known to be good on all hosts yet. */
export function isOnTrial({ cluster: { controllerFacts } }: Pass): boolean {
  return controllerFacts !== undefined && controllerFacts.keptAfter === controllerFacts.confirmed;
}

/** Whether the host has one that was on trial, and was taken back on the controller. */
export function mustGoBack(pass: Pass, host: Host, { keptAfter }: Facts): boolean {
  const isOther = !host.roles.has('controller');
  return isOther && !isOnTrial(pass) && keptAfter === pass.cluster.controllerFacts?.confirmed;
}

/** Whether Slurm nodes on it restart with the configuration that is wanted. */
export function hasNodesToRestart(pass: Pass, host: Host, facts: Facts): boolean {
  return configurationOwed(pass, host, facts).some(([, , owed]) => /^(compute|slurmd) /.test(`${owed}`));
}

function configurationOwed({ cluster, manifest }: Pass, host: Host, facts: Facts): Row[] {
  const plan = planHost(facts, manifest).configuration;
  const nodes = isForSlurmd(facts, manifest) ? host.nodes : [];
  return [
    ...oweRows(cluster.settings, host, plan, 'configuration'),
    ...nodes.map((node): Row => ['owe', 'configuration', `slurmd ${node}`]),
  ];
}

/** `configuration`: whether the host gets the wanted one, or the last good one back; false: neither. */
export function applyRows(
  pass: Pass,
  host: Host,
  facts: Facts,
  configuration: 'apply' | 'back' | false,
): Row[] {
  const { settings, controllerFacts } = pass.cluster;
  const { accounts, slurmConfiguration, configurationPutAt = '' } = pass.manifest;
  const site = Object.entries(controllerFacts?.controller?.site ?? {});
  // What the controller has of the configuration is what the cluster has.
  const isPart = configuration !== 'apply' && host.roles.has('controller');
  const desiredGeneration = isPart
    ? (facts.settled?.desiredGeneration ?? 0)
    : pass.manifest.desiredGeneration;
  const rows: Row[] = [
    versionRow({ ...pass.manifest, desiredGeneration }),
    ...accountRows(accounts),
    ...(host.roles.has('controller') ? limitRows(settings, accounts) : []),
    ...scriptRows(slurmConfiguration),
    ...site.map(([kind, value]): Row => ['site', kind, value]),
    ...oweRows(settings, host, planHost(facts, pass.manifest).accounts, 'accounts'),
    ...(configuration ? [['configuration', configuration] as const] : []),
    ...(isOnTrial(pass) ? [['trial', controllerFacts?.confirmed ?? 0] as const] : []),
  ];
  if (configuration !== 'apply') return rows;
  return [
    ...rows,
    ['put', configurationPutAt],
    ...configurationRows(settings, slurmConfiguration),
    ...configurationOwed(pass, host, facts),
  ];
}
