/**
 * Applies a manifest to the hosts in an order in which Slurm never needs what a host lacks: accounts and scripts on all
 * hosts but the controller; the controller, whose version counts; the configuration of the others; restarts.
 */
import type { Manifest } from '../../../domain/manifest.ts';
import type { SlurmCluster } from './cluster.ts';
import {
  accountRows,
  configurationRows,
  type HostPlan,
  oweRows,
  planHost,
  scriptRows,
  stepRows,
  versionRow,
} from './desired.ts';
import type { Host } from './hosts.ts';
import type { Progress } from './progress.ts';
import { restartOwed } from './restart.ts';
import type { Row } from './script.ts';
import { HostError } from './shell.ts';

interface Pass {
  cluster: SlurmCluster;
  progress: Progress;
  manifest: Manifest;
  /** By address: the plan for each host that answers. */
  plans: ReadonlyMap<string, HostPlan>;
  signal: AbortSignal;
}

export async function applyManifest(
  cluster: SlurmCluster,
  progress: Progress,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<void> {
  const ready = manifest.accounts.filter(({ loginState }) => loginState === 'ready');
  cluster.beginApply(ready.map(({ username }) => username));
  const unknown = cluster.hosts().filter(({ address }) => !cluster.results.has(address));
  await Promise.all(unknown.map((host) => cluster.run(host, 'observe', [], signal)));
  const [controller, ...others] = cluster.hosts();
  if (!controller) return;
  const plans = plansOf(cluster, manifest);
  const pass: Pass = { cluster, progress, manifest, plans, signal };
  const reachable = others.filter((host) => cluster.factsOf(host));
  const { added = [], removed = [] } = plans.get(controller.address)?.accounts ?? {};
  progress.start({ hosts: reachable.length + 1, added: added.length, removed: removed.length });
  await Promise.all(
    reachable.map((host) => applyTo(pass, host, applyRows(pass, host, isConfigured(pass, host)))),
  );
  if (cluster.factsOf(controller)) await applyToController(pass, controller, reachable);
  await restartOwed(cluster, manifest, signal);
  progress.applied(manifest.generation);
}

function plansOf(cluster: SlurmCluster, manifest: Manifest): Map<string, HostPlan> {
  const plans = new Map<string, HostPlan>();
  for (const host of cluster.hosts()) {
    const facts = cluster.factsOf(host);
    if (facts) plans.set(host.address, planHost(facts, manifest));
  }
  return plans;
}

/** Whether the host has the configuration that is wanted; the others get it once the controller has accepted it. */
function isConfigured({ plans }: Pass, { address }: Host): boolean {
  return plans.get(address)?.configuration.restarts.length === 0;
}

async function applyTo({ cluster, progress, signal }: Pass, host: Host, rows: readonly Row[]) {
  const result = await cluster.run(host, 'apply', rows, signal);
  progress.hostDone(host);
  return result;
}

async function applyToController(pass: Pass, controller: Host, reachable: readonly Host[]): Promise<void> {
  const { cluster, manifest, signal } = pass;
  const { settings } = cluster;
  const steps = stepRows(settings, isConfigured(pass, controller) ? ['reload'] : ['controller', 'reload']);
  const result = await applyTo(pass, controller, [...applyRows(pass, controller, true), ...steps]);
  if (result instanceof HostError || result.refused) return;
  const behind = reachable.filter((host) => cluster.factsOf(host) && !isConfigured(pass, host));
  const results = await Promise.all(
    behind.map((host) => cluster.run(host, 'apply', applyRows(pass, host, true), signal)),
  );
  if (!results.some((one) => !(one instanceof HostError) && one.changed)) return;
  const rows: Row[] = [versionRow(manifest), ['owe', 'now', 'reload'], ...stepRows(settings, ['reload'])];
  await cluster.run(controller, 'restart', rows, signal);
}

function applyRows({ cluster, manifest, plans }: Pass, host: Host, withConfiguration: boolean): Row[] {
  const { settings, controllerFacts } = cluster;
  const { accounts, slurmConfiguration } = manifest;
  const plan = plans.get(host.address);
  const site = Object.entries(controllerFacts?.controller?.site ?? {});
  const rows: Row[] = [
    versionRow(manifest),
    ...accountRows(accounts),
    ...scriptRows(slurmConfiguration),
    ...site.map(([kind, value]): Row => ['site', kind, value]),
    ...(plan ? oweRows(settings, host, plan.accounts, 'accounts') : []),
  ];
  if (!withConfiguration) return rows;
  return [
    ...rows,
    ['configuration', 'apply'],
    ...configurationRows(settings, slurmConfiguration),
    ...(plan ? oweRows(settings, host, plan.configuration, 'configuration') : []),
  ];
}
