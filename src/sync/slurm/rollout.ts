/**
 * Compute nodes, one after the other: with a configuration that is on trial, and for restarts that are due. The first that is worse
 * than before ends it, and takes the configuration back everywhere.
 */
import { patienceMs } from './cluster.ts';
import { nodeStepRows, stepRows, versionRow } from './desired.ts';
import type { Facts } from './facts.ts';
import { type Host, nameOf } from './hosts.ts';
import { applyRows, isConfigured, isOnTrial, mustGoBack, type Pass } from './pass.ts';
import { base64, type Row } from './script.ts';
import { HostError } from './shell.ts';

interface Fault {
  message: string;
  /** The configuration may not be what is wrong: it is tried again by and by. */
  isRetried: boolean;
}

/**
 * What is left is for later when something newer is to be done: no account waits for it. `applyPeople` gives a host its people, and
 * the last good configuration where it must go back.
 */
export async function rollOut(
  pass: Pass,
  controller: Host,
  applyPeople: (host: Host) => Promise<void>,
): Promise<void> {
  const { cluster, superseded } = pass;
  const isTrial = isOnTrial(pass);
  const atController = cluster.factsOf(controller);
  const isTaken = atController !== undefined && !atController.refused && isConfigured(pass, atController);
  for (const { host, facts } of inOrder(pass)) {
    if (superseded?.aborted) return;
    const fault = await restartNodes(pass, host, isTaken && !isConfigured(pass, facts));
    if (fault) return isTrial ? takeBack(pass, controller, fault, applyPeople) : undefined;
    await cluster.onEach(backWithout(pass), applyPeople, { superseded, ms: patienceMs.apply });
  }
  if (!isTrial || !isTaken || superseded?.aborted) return;
  const rows: Row[] = [versionRow(pass.manifest), ['configuration', 'confirm']];
  const result = await cluster.run(controller, 'restart', rows, pass.signal);
  const worse = result instanceof HostError ? undefined : faultIn(result);
  if (worse) await takeBack(pass, controller, worse, applyPeople);
}

/** Hosts that answer again, without the list: that does not wait until all nodes have restarted. */
function backWithout({ cluster, manifest }: Pass): Host[] {
  return cluster.hosts().filter((host) => {
    const facts = cluster.factsOf(host);
    const problems = cluster.problems.get(host.address) ?? [];
    const wasAway = problems.every(({ kind }) => kind === 'unanswered');
    return facts && wasAway && facts.settled?.generation !== manifest.generation;
  });
}

/** First where it failed before, so that no other node is lost to the same; then the site's choice, and those without jobs. */
function inOrder({ cluster }: Pass) {
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

/** Restarts what is due on a host, with the configuration where it is behind. */
async function restartNodes(pass: Pass, host: Host, isBehind: boolean): Promise<Fault | undefined> {
  const { cluster, signal, superseded, manifest } = pass;
  const steps = nodeStepRows(cluster.settings, host);
  const trial: Row[] = isOnTrial(pass) ? [['trial', cluster.controllerFacts?.confirmed ?? 0]] : [];
  // Where it takes longer than is waited for.
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

/** On the controller first: hosts may share its files, or get theirs from it. */
async function takeBack(
  pass: Pass,
  controller: Host,
  { message, isRetried }: Fault,
  applyPeople: (host: Host) => Promise<void>,
): Promise<void> {
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
  // The next pass puts back what is not waited for.
  await cluster.onEach(hosts, applyPeople, { superseded, ms: patienceMs.order });
}
