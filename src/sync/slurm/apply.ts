/**
 * Applies a manifest: accounts and scripts on all hosts in parallel, compute nodes in the background. Then steps that need
 * an order, so that Slurm never needs what a host lacks: a new configuration on the controller, whose version counts; on
 * hosts without a Slurm node; restarts of services; and compute nodes, one at a time: the first that is worse than before
 * rolls a configuration on trial back everywhere.
 */
import type { Manifest } from '../../domain/access/manifest.ts';
import { patienceMs, type SlurmCluster, type WaitOptions } from './cluster.ts';
import {
  accountRows,
  configurationRows,
  directRows,
  formerRows,
  groupRows,
  isForSlurmd,
  limitRows,
  nodeStepRows,
  oweRows,
  planHost,
  scriptRows,
  stepRows,
  versionRow,
} from './desired.ts';
import type { Facts } from './facts.ts';
import { type Host, isInFront, nameOf } from './hosts.ts';
import type { Progress } from './progress.ts';
import { base64, type Row } from './script.ts';
import { HostError } from './shell.ts';

interface ApplyRun {
  cluster: SlurmCluster;
  manifest: Manifest;
  signal: AbortSignal;
  superseded: AbortSignal | undefined;
}

export async function applyManifest(
  cluster: SlurmCluster,
  progress: Progress,
  manifest: Manifest,
  { signal, superseded }: { signal: AbortSignal } & Pick<WaitOptions, 'superseded'>,
): Promise<void> {
  const ready = manifest.accounts.filter(({ loginState }) => loginState === 'ready');
  cluster.beginApply(
    ready.map(({ username }) => username),
    manifest.generation,
  );
  const [controller] = cluster.hosts();
  if (!controller) return;
  // The controller's facts name the compute nodes.
  if (!cluster.controllerFacts) await cluster.run(controller, 'observe', [], signal);
  const pass: ApplyRun = { cluster, manifest, signal, superseded };
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
  // Hosts must have the scripts before a configuration that names them. Only this waits for compute nodes.
  if (facts && !isConfigured(pass, facts)) await behind;
  if (superseded?.aborted) return;
  const order = { superseded, ms: patienceMs.order };
  await cluster.onEach([controller], (host) => applyConfiguration(pass, host), order);
  await restartServices(cluster, manifest, signal, order);
  await behind;
  await rollOut(pass, controller);
  progress.applied(manifest.generation);
}

function hasAll(pass: ApplyRun, facts: Facts): boolean {
  const { settled, drift, owed } = facts;
  const { generation, desiredGeneration } = pass.manifest;
  const isSettled = settled?.generation === generation && settled.desiredGeneration === desiredGeneration;
  return isSettled && drift.length === 0 && owed.length === 0 && isConfigured(pass, facts);
}

/** Applies people and scripts to a host, and its configuration if it has the wanted one already; or rolls that back. */
async function applyPeople(pass: ApplyRun, host: Host): Promise<void> {
  const { cluster, manifest, signal } = pass;
  await cluster.idle(host);
  if (cluster.wantedGeneration !== manifest.generation) return;
  const facts = cluster.factsOf(host) ?? (await cluster.run(host, 'observe', [], signal));
  if (facts instanceof HostError) return;
  const isBack = mustGoBack(pass, host, facts);
  // Hosts may share its files: the controller must try a configuration before any other host has it.
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

/** Puts the configuration on trial on the controller; if it is accepted, also on hosts without a Slurm node to restart. */
async function applyConfiguration(pass: ApplyRun, controller: Host): Promise<void> {
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

/** Restarts login nodes, controller and accounting, on all hosts in parallel. */
async function restartServices(
  cluster: SlurmCluster,
  manifest: Manifest,
  signal: AbortSignal,
  waiting: WaitOptions,
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

/** The owed restarts except those of compute nodes, in the order in which they run. */
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

interface Fault {
  message: string;
  /** The configuration may not be the cause: it is tried again with back-off. */
  isRetried: boolean;
}

/** Restarts compute nodes one at a time. A newer wanted state ends it: no account waits for the remaining nodes. */
async function rollOut(pass: ApplyRun, controller: Host): Promise<void> {
  const { cluster, superseded } = pass;
  const isTrial = isOnTrial(pass);
  const bring = (host: Host) => applyPeople(pass, host);
  const atController = cluster.factsOf(controller);
  const isTaken = atController !== undefined && !atController.refused && isConfigured(pass, atController);
  for (const { host, facts } of inOrder(pass)) {
    if (superseded?.aborted) return;
    const fault = await restartNodes(pass, host, isTaken && !isConfigured(pass, facts));
    if (fault) return isTrial ? takeBack(pass, controller, fault) : undefined;
    await cluster.onEach(backWithout(pass), bring, { superseded, ms: patienceMs.apply });
  }
  if (!isTrial || !isTaken || superseded?.aborted) return;
  const rows: Row[] = [versionRow(pass.manifest), ['configuration', 'confirm']];
  const result = await cluster.run(controller, 'restart', rows, pass.signal);
  const worse = result instanceof HostError ? undefined : faultIn(result);
  if (worse) await takeBack(pass, controller, worse);
}

/** Hosts that answer again and lack the list: they get it before all nodes have restarted. */
function backWithout({ cluster, manifest }: ApplyRun): Host[] {
  return cluster.hosts().filter((host) => {
    const facts = cluster.factsOf(host);
    const problems = cluster.problems.get(host.address) ?? [];
    const wasAway = problems.every(({ kind }) => kind === 'unanswered');
    return facts && wasAway && facts.settled?.generation !== manifest.generation;
  });
}

/** Hosts in restart order: failed before (so that no other is lost to the same fault), the site's trial node, idle ones. */
function inOrder({ cluster }: ApplyRun) {
  const { machines = [], jobs = [] } = cluster.controllerFacts?.controller ?? {};
  const away = machines.filter(({ phase }) => /down|drain|not_responding|\*$/.test(phase));
  const isBusy = new Set([...away.map(({ name }) => name), ...jobs.flatMap((job) => job.machines)]);
  const rank = ({ host, facts }: { host: Host; facts: Facts }) => {
    if (facts.hasFailed) return 0;
    if (host.nodes.some((name) => name === cluster.settings.trialNode)) return 1;
    return host.nodes.some((name) => isBusy.has(name)) ? 3 : 2;
  };
  return cluster
    .hosts()
    .filter(({ nodes }) => nodes.length > 0)
    .flatMap((host) => {
      const facts = cluster.factsOf(host);
      return facts ? [{ host, facts }] : [];
    })
    .sort((a, b) => rank(a) - rank(b));
}

/** Restarts the Slurm nodes of a host that owe it, with the configuration if the host is behind. */
async function restartNodes(pass: ApplyRun, host: Host, isBehind: boolean): Promise<Fault | undefined> {
  const { cluster, signal, superseded, manifest } = pass;
  const steps = nodeStepRows(cluster.settings, host);
  const trial: Row[] = isOnTrial(pass) ? [['trial', cluster.controllerFacts?.confirmed ?? 0]] : [];
  // The result when the restart takes longer than the timeout.
  const late: Fault = { message: `${nameOf(host)} does not answer in time`, isRetried: true };
  let fault: Fault | undefined = late;
  const restart = async () => {
    await cluster.idle(host);
    const facts = cluster.factsOf(host);
    const isDue = facts?.owed.some((owed) => /^(compute|slurmd) /.test(owed));
    if (!facts || !(isBehind || isDue)) {
      fault = undefined;
      return;
    }
    const result = isBehind
      ? await cluster.run(host, 'apply', [...applyRows(pass, host, facts, 'apply'), ...steps], signal)
      : await cluster.run(host, 'restart', [versionRow(manifest), ...trial, ...steps], signal);
    const found =
      result instanceof HostError ? { message: result.message, isRetried: true } : faultIn(result);
    fault = found && { ...found, message: `${nameOf(host)} does not take it: ${found.message}` };
  };
  await cluster.onEach([host], restart, { superseded, ms: patienceMs.order });
  return fault === late && superseded?.aborted ? undefined : fault;
}

function faultIn({ problems }: Facts): Fault | undefined {
  const problem = problems.find(({ kind }) => kind === 'restart' || kind === 'unfit');
  return problem && { message: problem.message, isRetried: problem.kind === 'restart' };
}

/** Rolls the configuration back, on the controller first: hosts may share its files, or fetch theirs from it. */
async function takeBack(pass: ApplyRun, controller: Host, { message, isRetried }: Fault): Promise<void> {
  const { cluster, manifest, signal, superseded } = pass;
  const rows: Row[] = [
    versionRow(manifest),
    ['put', manifest.configurationPutAt ?? ''],
    ['configuration', 'back'],
    ['why', base64(message), isRetried ? 'retry' : '-'],
    ...stepRows(cluster.settings, ['reload']),
    ...nodeStepRows(cluster.settings, controller),
  ];
  await cluster.run(controller, 'restart', rows, signal);
  const hosts = cluster.hosts().filter((host) => {
    const facts = cluster.factsOf(host);
    return facts && mustGoBack(pass, host, facts);
  });
  // The next pass rolls back the hosts that this one does not wait for.
  await cluster.onEach(hosts, (host) => applyPeople(pass, host), { superseded, ms: patienceMs.order });
}

/** Whether the host has the wanted configuration; hosts get it once the controller has accepted it. */
function isConfigured({ manifest }: ApplyRun, facts: Facts): boolean {
  return planHost(facts, manifest).configuration.restarts.length === 0;
}

/** Whether the controller has a configuration that is not yet known to be good on all hosts. */
function isOnTrial({ cluster: { controllerFacts } }: ApplyRun): boolean {
  return controllerFacts !== undefined && controllerFacts.keptAfter === controllerFacts.confirmed;
}

/** Whether the host has a configuration that was on trial and that the controller has rolled back. */
function mustGoBack(pass: ApplyRun, host: Host, { keptAfter }: Facts): boolean {
  const isOther = !host.roles.has('controller');
  return isOther && !isOnTrial(pass) && keptAfter === pass.cluster.controllerFacts?.confirmed;
}

/** Whether the wanted configuration restarts Slurm nodes on the host. */
function hasNodesToRestart(pass: ApplyRun, host: Host, facts: Facts): boolean {
  return configurationOwed(pass, host, facts).some(([, , owed]) => /^(compute|slurmd) /.test(`${owed}`));
}

function configurationOwed({ cluster, manifest }: ApplyRun, host: Host, facts: Facts): Row[] {
  const plan = planHost(facts, manifest).configuration;
  const nodes = isForSlurmd(facts, manifest) ? host.nodes : [];
  return [
    ...oweRows(cluster.settings, host, plan, 'configuration'),
    ...nodes.map((node): Row => ['owe', 'configuration', `slurmd ${node}`]),
  ];
}

/** Rows to apply a host's part. `configuration`: the wanted one, the last good one (`back`), or neither (false). */
function applyRows(pass: ApplyRun, host: Host, facts: Facts, configuration: 'apply' | 'back' | false): Row[] {
  const { settings, controllerFacts } = pass.cluster;
  const { accounts, former, slurmConfiguration, configurationPutAt = '' } = pass.manifest;
  const site = Object.entries(controllerFacts?.controller?.site ?? {});
  // Without the wanted configuration, the controller keeps its version: that version is the cluster's.
  const isPart = configuration !== 'apply' && host.roles.has('controller');
  const desiredGeneration = isPart
    ? (facts.settled?.desiredGeneration ?? 0)
    : pass.manifest.desiredGeneration;
  const plan = planHost(facts, pass.manifest);
  const rows: Row[] = [
    versionRow({ ...pass.manifest, desiredGeneration }),
    ...accountRows(accounts, host),
    ...formerRows(former),
    ...groupRows(pass.manifest),
    ...(host.roles.has('login') ? directRows(pass.manifest, pass.cluster.options.gateway) : []),
    ...(host.roles.has('controller') ? limitRows(settings, accounts) : []),
    ...scriptRows(slurmConfiguration),
    ...site.map(([kind, value]): Row => ['site', kind, value]),
    ...oweRows(settings, host, plan.accounts, 'accounts'),
    ...oweRows(settings, host, plan.made, 'made'),
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
