/**
 * The Slurm driver: a site's own cluster, kept over SSH (or on this machine) with nothing installed there. Each host gets
 * its whole part as one idempotent script and answers with what is in force, so that a look or a change is one round trip a
 * host. What is ours is noted on the host itself; nothing that matters is remembered here.
 *
 *   observe: controller → the other hosts, side by side → report.ts
 *   apply:   other hosts (accounts, scripts) → controller (accounts, associations, configuration on trial)
 *            → other hosts' configuration → login, controller, accounting restart → compute nodes, one at a time
 */
import { join } from 'node:path';
import type { Manifest, SlurmReport } from '../../../domain/manifest.ts';
import type { SlurmSettings } from '../../../domain/slurm-settings.ts';
import type { Logger } from '../../../lib/log.ts';
import type { SlurmDriver } from '../../driver.ts';
import { createQueue } from '../../queue.ts';
import {
  accountRows,
  type Common,
  configurationRows,
  hostRows,
  oweRows,
  planHost,
  scriptRows,
  stepRows,
} from './desired.ts';
import { type Facts, type KnownLogins, readFacts } from './facts.ts';
import { createHostRecord, fateOf, hasPassed, type LeftHost, leftBehind } from './host-record.ts';
import { type Host, hostsOf, loginPlaces } from './hosts.ts';
import { reportOf } from './report.ts';
import { type Row, scriptOf } from './script.ts';
import { createShell, HostError, type Shell } from './shell.ts';

export interface SlurmOptions {
  name: string;
  clusterId: string;
  /** The Slurm account that people's associations are in. */
  organization: string;
  settings: SlurmSettings;
  /** Where this cluster's files are kept here. */
  dataDir: string;
  /** Tells the gateway that a login node (`host:port`) is about to restart. */
  endSessions(loginNode: string): void;
  log: Logger;
}

export interface RealSlurmDriver extends SlurmDriver {
  /** How many scripts were run, which is the number of round trips. */
  readonly roundTrips: number;
}

const hostsAtOnce = 32;
/** In seconds; many hosts that are away must not keep the others waiting each time. */
const patience = { usual: 10, away: 3 };
const scriptLimitMs = 300_000;
const mostKnown = 8;
/** Of the hosts that are not in use any more, so many are tried at a time: they may never answer again. */
const mostLeftAtOnce = 8;
/** Changes that come together are applied together: a restart costs everyone their session. */
const gatherMs = { restart: 2_000, live: 200 };

export function createSlurmDriver(options: SlurmOptions): RealSlurmDriver {
  const { settings, log, endSessions } = options;
  const common: Common = options;
  const shell: Shell = createShell({
    user: settings.manage?.user ?? 'root',
    identityFile: settings.manage?.identityFile,
    directory: join(options.dataDir, 'slurm'),
    limitMs: scriptLimitMs,
  });
  const inTurn = createQueue(hostsAtOnce);
  /** By address: what each host said last, or why it did not. */
  const facts = new Map<string, Facts | HostError>();
  /** The same, of the scripts of the `apply` under way: a look at the same time may have begun before them. */
  const applied = new Map<string, Facts | HostError>();
  const problems = new Map<string, Facts['problems']>();
  const known: KnownLogins = new Map();
  let nodes: readonly string[] = [];
  let usernames: readonly string[] | undefined;
  /** What the controller said when it last answered. */
  let controllerFacts: Facts | undefined;
  let isApplying = false;
  let looks = 0;
  let progress: { done: number; hosts: number; people: number } | undefined;
  let wereUp: ReadonlySet<string> = new Set();
  const record = createHostRecord(join(options.dataDir, 'slurm', 'hosts.json'));
  const told = new Map<string, string>();

  const people = () => usernames ?? controllerFacts?.logins ?? [];
  const hosts = () => hostsOf(settings, { nodes, usernames: people() });
  /** Hosts that were in use and are not; none while it is not known which are. */
  const leftHosts = () =>
    controllerFacts && (nodes.length > 0 || !settings.compute) ? record.left(hosts()) : [];

  /** Runs a script on a host and keeps what it says; a host's fault is kept as well, and is no error here. */
  async function visit(host: Host, action: string, rows: readonly Row[], signal: AbortSignal) {
    const knownRows = [...known.keys()].slice(-4).map((digest): Row => ['known', digest]);
    const script = scriptOf([...hostRows(common, host, action), ...knownRows, ...rows]);
    const last = facts.get(host.address);
    const isAway = last instanceof HostError && last.away;
    try {
      const text = await inTurn(() =>
        shell.run(host, script, signal, isAway ? patience.away : patience.usual),
      );
      const said = readFacts(text, known);
      for (const digest of known.keys()) if (known.size > mostKnown) known.delete(digest);
      facts.set(host.address, said);
      if (action !== 'observe') {
        applied.set(host.address, said);
        problems.set(host.address, said.problems);
      }
      if (action === 'apply') record.add(host, personOf(host));
      if (said.controller) {
        controllerFacts = said;
        if (said.controller.machines.length > 0) nodes = said.controller.machines.map(({ name }) => name);
      }
      return said;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const fault =
        error instanceof HostError
          ? error
          : new HostError(`${host.address}: ${(error as Error).message}`, true);
      facts.set(host.address, fault);
      if (action !== 'observe') applied.set(host.address, fault);
      // A look that follows may well succeed, and must not hide it.
      if (action !== 'observe' && !fault.away)
        problems.set(host.address, [{ kind: 'script', words: fault.message }]);
      return fault;
    }
  }

  /** Whose login node it is, where each person has their own. */
  const personOf = ({ address }: Host) =>
    settings.loginMode === 'PerUser'
      ? loginPlaces(settings, people()).find((place) => place.address === address)?.username
      : undefined;

  /** What stays as it is is logged once. */
  function tell(event: 'slurm.fault' | 'slurm.drifted' | 'slurm.left', words = ''): void {
    if (told.get(event) !== words && words !== '') log.warn(event, { cluster: options.name, words });
    told.set(event, words);
  }

  const saidOf = (host: Host) => applied.get(host.address) ?? facts.get(host.address);
  const isThere = (host: Host) => saidOf(host) !== undefined && !(saidOf(host) instanceof HostError);
  const factsOf = (host: Host) => saidOf(host) as Facts;

  async function look(signal: AbortSignal): Promise<void> {
    const [controller] = hosts();
    if (controller) await visit(controller, 'observe', [], signal);
    const all = hosts();
    const rest = all.filter(({ address }) => address !== controller?.address);
    const gone = leftHosts();
    looks += 1;
    const first = gone.length === 0 ? 0 : (looks * mostLeftAtOnce) % gone.length;
    const some = [...gone.slice(first), ...gone.slice(0, first)].slice(0, mostLeftAtOnce);
    await Promise.all([...rest, ...some].map((host) => visit(host, 'observe', [], signal)));
    const present = new Set([...all, ...gone].map(({ address }) => address));
    for (const address of facts.keys()) if (!present.has(address)) facts.delete(address);
  }

  /** Takes away what is ours on a host. Returns in words what is left there; nothing where nothing is. */
  async function leaveHost(host: Host, extra: readonly Row[], signal: AbortSignal): Promise<string[]> {
    const rows: Row[] = [
      ['version', 0, 0, 0],
      ['configuration', 'apply'],
      ...configurationRows(settings, {}),
      ...stepRows(settings, ['reload']),
      ...extra,
    ];
    const said = await visit(host, 'release', rows, signal);
    if (said instanceof HostError) return [said.message];
    if (said.problems.length === 0) record.remove(host.address);
    return said.problems.map(({ words }) => `${host.address}: ${words}`);
  }

  const isPassed = (host: LeftHost) => hasPassed(host, { nodes, usernames: people() });
  const present = () => hosts().map((host) => ({ host, said: saidOf(host) }));

  /** Hosts that are not in use any more: what a person must know of them, and whether something can be done. */
  function leftFindings(): { left: string[]; isCleaningDue: boolean } {
    const all = leftHosts().map((host) => ({ host, said: facts.get(host.address) }));
    const away = all.flatMap(({ host, said }) => (said instanceof HostError ? [{ host, said }] : []));
    tell('slurm.left', away.map(({ host, said }) => leftBehind(host, said.message)).join('; '));
    return {
      left: [
        ...away.filter(({ host }) => !isPassed(host)).map(({ host, said }) => leftBehind(host, said.message)),
        ...all.flatMap(({ host }) =>
          (problems.get(host.address) ?? []).map(({ words }) => leftBehind(host, words)),
        ),
      ],
      isCleaningDue: all.some(
        ({ host, said }) => said && !(said instanceof HostError) && fateOf(host, said, present()) !== 'wait',
      ),
    };
  }

  /** Cleans hosts that are not in use any more, as far as they answer. */
  async function cleanLeft(signal: AbortSignal): Promise<void> {
    for (const host of leftHosts().slice(0, mostLeftAtOnce)) {
      if (facts.get(host.address) instanceof HostError) continue;
      const said = await visit(host, 'observe', [], signal);
      if (said instanceof HostError) continue;
      const fate = fateOf(host, said, present());
      if (fate === 'forget') record.remove(host.address);
      if (fate !== 'clean') continue;
      // One that shares its files with those in use leaves them alone.
      const isShared = present().some(
        ({ said: one }) => one && !(one instanceof HostError) && one.inode === said.inode,
      );
      const why = await leaveHost(host, isShared ? [['keep', 'configuration']] : [], signal);
      if (why.length === 0) log.info('slurm.cleaned', { cluster: options.name, host: host.address });
    }
  }

  const progressWords = () =>
    progress && `${progress.done} of ${progress.hosts} hosts have what changed (people: ${progress.people}).`;

  return {
    followsSettings: false,
    gatherMs: gatherMs[settings.rollout ?? 'restart'],
    get roundTrips() {
      return shell.runs;
    },
    async observe(signal): Promise<SlurmReport> {
      await look(signal);
      const [controller] = hosts();
      const said = controller && facts.get(controller.address);
      if (!controllerFacts) throw said instanceof Error ? said : new Error('the controller said nothing');
      const places = loginPlaces(settings, usernames ?? controllerFacts.logins);
      const report = reportOf({
        ...{ settings, hosts: hosts(), places, facts, problems, controllerFacts, isApplying, wereUp },
        ...{ progress: progressWords(), ...leftFindings() },
      });
      wereUp = new Set(report.loginNodes.filter(({ up }) => up).map(({ name }) => name));
      tell('slurm.fault', report.scheduler?.ready?.status === 'True' ? '' : report.scheduler?.ready?.message);
      const drift = [...facts].flatMap(([host, one]) =>
        one instanceof HostError ? [] : one.drift.map((words) => `${host}: ${words}`),
      );
      tell('slurm.drifted', drift.join('; '));
      return report;
    },

    async apply(manifest, signal) {
      applied.clear();
      isApplying = true;
      await applyAll(manifest, signal)
        .then(() => cleanLeft(signal))
        .finally(() => {
          isApplying = false;
          progress = undefined;
        });
    },

    async release(signal) {
      await look(signal);
      const left: string[] = [];
      const [controller, ...others] = hosts();
      const leave = async (host: Host) => {
        left.push(...(await leaveHost(host, [], signal)));
      };
      // Slurm must know of no script of ours before the scripts go.
      if (controller) await leave(controller);
      if (left.length === 0) await Promise.all(others.map(leave));
      for (const host of leftHosts()) {
        const why = await leaveHost(host, [], signal);
        if (why.length > 0 && !isPassed(host)) left.push(leftBehind(host, why.join('; ')));
      }
      if (left.length > 0) throw new Error(left.slice(0, 5).join('; '));
    },
    async close() {},
  };

  async function applyAll(manifest: Manifest, signal: AbortSignal): Promise<void> {
    usernames = manifest.accounts
      .filter(({ loginState }) => loginState === 'ready')
      .map(({ username }) => username);
    await Promise.all(hosts().map((host) => facts.has(host.address) || visit(host, 'observe', [], signal)));
    const [controller, ...others] = hosts();
    if (!controller) return;
    const changes = new Map<string, ReturnType<typeof planHost>>();
    for (const host of hosts())
      if (isThere(host)) changes.set(host.address, planHost(factsOf(host), manifest));
    const planOf = (host: Host) => changes.get(host.address);
    const isConfigured = (host: Host) => planOf(host)?.configuration.restarts.length === 0;
    const there = others.filter(isThere);
    const { added, removed } = planOf(controller)?.accounts ?? { added: [], removed: [] };
    const level = added.length + removed.length > 0 ? 'info' : 'debug';
    const started = performance.now();
    const counts = { done: 0, hosts: there.length + 1, people: added.length + removed.length };
    progress = counts;
    const take = async (host: Host, rows: readonly Row[]) => {
      const said = await visit(host, 'apply', rows, signal);
      counts.done += 1;
      log[level]('slurm.progress', {
        ...{ cluster: options.name, host: host.address, done: counts.done, hosts: counts.hosts },
        ms: Math.round(performance.now() - started),
      });
      return said;
    };

    // Scripts that the configuration will name, and accounts; on the controller last, whose version counts.
    await Promise.all(there.map((host) => take(host, applyRows(host, manifest, isConfigured(host)))));
    if (isThere(controller)) {
      const steps = stepRows(settings, isConfigured(controller) ? ['reload'] : ['controller', 'reload']);
      const said = await take(controller, [...applyRows(controller, manifest, true), ...steps]);
      const isAccepted = !(said instanceof HostError) && !said.refused;
      const behind = isAccepted ? there.filter((host) => isThere(host) && !isConfigured(host)) : [];
      const changed = await Promise.all(
        behind.map((host) => visit(host, 'apply', applyRows(host, manifest, true), signal)),
      );
      if (changed.some((one) => !(one instanceof HostError) && one.changed)) {
        const rows: Row[] = [
          ['version', ...versionFields(manifest)],
          ['owe', 'now', 'reload'],
          ...stepRows(settings, ['reload']),
        ];
        await visit(controller, 'restart', rows, signal);
      }
    }
    await restart(manifest, signal);
    log[level]('slurm.applied', {
      cluster: options.name,
      generation: manifest.generation,
      added: added.length,
      removed: removed.length,
    });

    function applyRows(
      host: Host,
      { accounts, slurmConfiguration }: Manifest,
      isConfigurationToo: boolean,
    ): Row[] {
      const plan = planOf(host);
      return [
        ['version', ...versionFields(manifest)],
        ...accountRows(accounts),
        ...scriptRows(slurmConfiguration),
        ...Object.entries(controllerFacts?.controller?.site ?? {}).map(
          ([kind, value]): Row => ['site', kind, value],
        ),
        ...(plan ? oweRows(settings, host, plan.accounts, 'accounts') : []),
        ...(isConfigurationToo
          ? [
              ['configuration', 'apply'] as Row,
              ...configurationRows(settings, slurmConfiguration),
              ...(plan ? oweRows(settings, host, plan.configuration, 'configuration') : []),
            ]
          : []),
      ];
    }
  }

  /** Everything that hosts owe: first what people meet, together, then the compute nodes one at a time. */
  async function restart(manifest: Manifest, signal: AbortSignal): Promise<void> {
    const version: Row = ['version', ...versionFields(manifest)];
    const all = hosts().filter(isThere);
    const places = loginPlaces(settings, usernames ?? []);
    await Promise.all(
      all.map(async (host) => {
        const wanted = (['accounting', 'controller', 'reload', 'login'] as const).filter(
          (role) => factsOf(host).owed.includes(role) && (role === 'reload' || host.roles.has(role)),
        );
        if (wanted.length === 0) return;
        if (wanted.includes('login')) {
          for (const place of places)
            if (place.address === host.address) endSessions(`${place.host}:${place.port}`);
        }
        await visit(host, 'restart', [version, ...stepRows(settings, wanted)], signal);
      }),
    );
    for (const host of all) {
      for (const node of host.nodes) {
        if (!isThere(host) || !factsOf(host).owed.includes(`compute ${node}`)) continue;
        await visit(host, 'restart', [version, ...stepRows(settings, ['compute'], node)], signal);
      }
    }
  }
}

function versionFields({ generation, listVersion, desiredGeneration }: Manifest): [number, number, number] {
  return [generation, listVersion, desiredGeneration];
}
