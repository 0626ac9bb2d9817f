/**
 * Applies a manifest: accounts and scripts on all hosts at the same time, those that people meet first in front. Then what needs an
 * order in which Slurm never needs what a host lacks: a new configuration on the controller, whose version counts; on hosts
 * without a Slurm node; restarts of services; and one compute node after the other (rollout.ts).
 */
import type { Manifest } from '../../domain/access/manifest.ts';
import { patienceMs, type SlurmCluster, type Waiting } from './cluster.ts';
import { nodeStepRows, planHost, stepRows, versionRow } from './desired.ts';
import type { Facts } from './facts.ts';
import { type Host, isInFront } from './hosts.ts';
import { applyRows, hasNodesToRestart, isConfigured, mustGoBack, type Pass } from './pass.ts';
import type { Progress } from './progress.ts';
import { rollOut } from './rollout.ts';
import { HostError } from './shell.ts';

export async function applyManifest(
  cluster: SlurmCluster,
  progress: Progress,
  manifest: Manifest,
  { signal, superseded }: { signal: AbortSignal } & Pick<Waiting, 'superseded'>,
): Promise<void> {
  const ready = manifest.accounts.filter(({ loginState }) => loginState === 'ready');
  cluster.beginApply(
    ready.map(({ username }) => username),
    manifest.generation,
  );
  const [controller] = cluster.hosts();
  if (!controller) return;
  // It says which compute nodes there are.
  if (!cluster.controllerFacts) await cluster.run(controller, 'observe', [], signal);
  const pass: Pass = { cluster, manifest, signal, superseded };
  const facts = cluster.factsOf(controller);
  const { added = [], removed = [] } = facts ? planHost(facts, manifest).accounts : {};
  const hosts = cluster.hosts();
  progress.start({ hosts: hosts.length, added: added.length, removed: removed.length });
  const work = async (host: Host) => {
    await applyPeople(pass, host);
    progress.hostDone(host);
  };
  const front = hosts.filter(isInFront);
  const atFront = cluster.onEach(front, work, { superseded, ms: patienceMs.apply });
  const behind = cluster.onEach(
    hosts.filter((host) => !isInFront(host)),
    work,
    { superseded, ms: patienceMs.apply },
  );
  behind.catch(() => {});
  await atFront;
  // A configuration that names scripts must not come before them. Nothing else waits for a compute node.
  if (facts && !isConfigured(pass, facts)) await behind;
  if (superseded?.aborted) return;
  const order = { superseded, ms: patienceMs.order };
  await cluster.onEach([controller], (host) => applyConfiguration(pass, host), order);
  await restartServices(cluster, manifest, signal, order);
  await behind;
  await rollOut(pass, controller, (host) => applyPeople(pass, host));
  progress.applied(manifest.generation);
}

function hasAll(pass: Pass, facts: Facts): boolean {
  const { settled, drift, owed } = facts;
  const { generation, desiredGeneration } = pass.manifest;
  const isSettled = settled?.generation === generation && settled.desiredGeneration === desiredGeneration;
  return isSettled && drift.length === 0 && owed.length === 0 && isConfigured(pass, facts);
}

/** What a host that has the configuration needs, and of one that has not yet, its people and scripts; or the last good one. */
async function applyPeople(pass: Pass, host: Host): Promise<void> {
  const { cluster, manifest, signal } = pass;
  await cluster.idle(host);
  if (cluster.wantedGeneration !== manifest.generation) return;
  const facts = cluster.factsOf(host) ?? (await cluster.run(host, 'observe', [], signal));
  if (facts instanceof HostError) return;
  const isBack = mustGoBack(pass, host, facts);
  // Hosts may share its files: none has the configuration before the controller has tried it.
  const isTried = isConfigured(pass, cluster.controllerFacts ?? facts);
  const configuration = isBack ? 'back' : isTried && isConfigured(pass, facts) && 'apply';
  const steps = isBack
    ? nodeStepRows(cluster.settings, host)
    : host.roles.has('controller') && configuration
      ? stepRows(cluster.settings, ['reload'])
      : [];
  const rows = [...applyRows(pass, host, facts, configuration), ...steps];
  if (isBack || !hasAll(pass, facts)) await cluster.run(host, 'apply', rows, signal);
}

/** The configuration on the controller, on trial, and on others that restart no Slurm node with it when it has taken it. */
async function applyConfiguration(pass: Pass, controller: Host): Promise<void> {
  const { cluster, signal, superseded } = pass;
  const { settings } = cluster;
  const facts = cluster.factsOf(controller);
  if (!facts) return;
  if (!isConfigured(pass, facts)) {
    const rows = [
      ...applyRows(pass, controller, facts, 'apply'),
      ...stepRows(settings, ['controller', 'reload']),
    ];
    const result = await cluster.run(controller, 'apply', rows, signal);
    if (result instanceof HostError || result.refused) return;
  } else if (facts.refused) return;
  const behind = cluster.hosts().filter((host) => {
    const known = cluster.factsOf(host);
    if (host.address === controller.address || !known || isConfigured(pass, known)) return false;
    return !hasNodesToRestart(pass, host, known);
  });
  const applyTo = async (host: Host) => {
    const known = cluster.factsOf(host);
    if (known) await cluster.run(host, 'apply', applyRows(pass, host, known, 'apply'), signal);
  };
  await cluster.onEach(behind, applyTo, { superseded, ms: patienceMs.order });
}

/** Login nodes, controller and accounting, on all hosts together. */
async function restartServices(
  cluster: SlurmCluster,
  manifest: Manifest,
  signal: AbortSignal,
  waiting: Waiting,
): Promise<void> {
  const restart = async (host: Host) => {
    const roles = servicesOwed(cluster, host);
    if (roles.includes('login')) endSessions(cluster, host);
    const rows = [versionRow(manifest), ...stepRows(cluster.settings, roles)];
    if (roles.length > 0) await cluster.run(host, 'restart', rows, signal);
  };
  const hosts = cluster.hosts().filter((host) => cluster.factsOf(host));
  await cluster.onEach(hosts, restart, waiting);
}

/** All but compute nodes, in the order in which they restart. */
function servicesOwed(cluster: SlurmCluster, host: Host) {
  const owed = cluster.factsOf(host)?.owed ?? [];
  return (['accounting', 'controller', 'reload', 'login'] as const).filter(
    (role) => owed.includes(role) && (role === 'reload' || host.roles.has(role)),
  );
}

function endSessions(cluster: SlurmCluster, { address }: Host): void {
  for (const node of cluster.loginNodes())
    if (node.address === address) cluster.options.endSessions(`${node.host}:${node.port}`);
}
