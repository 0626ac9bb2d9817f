/**
 * The simulated drivers. Slurm: a cluster that exists only here, with computed nodes and a real login node that people can
 * log in to. It takes its time to apply, restarts services as the contract requires, keeps its state on disk, and reports as
 * a real cluster does. And a Kubernetes cluster that exists only here.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  KubernetesSideReport,
  LoginNodeReport,
  Manifest,
  SlurmReport,
} from '../../domain/access/manifest.ts';
import type { SimulatedSettings } from '../../domain/clusters/lab.ts';
import { permissionIds } from '../../domain/kubernetes/bindings.ts';
import { restartPlan } from '../../domain/slurm/restart-plan.ts';
import type { Logger } from '../../lib/log.ts';
import type { KubernetesDriver, SlurmDriver } from '../driver.ts';
import { type FindOwners, findForeign, noForeign, withoutAccount } from './foreign.ts';
import {
  isProvisioned,
  kubernetesReport,
  machineReports,
  reach,
  type SimulatedOptions,
  schedulerReport,
  storageReport,
} from './knobs.ts';
import type { LoginNode } from './login-node/index.ts';
import type { Account } from './login-node/messages.ts';
import {
  forgetState,
  readLogins,
  readState,
  type SimulatedState,
  textOf,
  writeLogins,
  writeState,
} from './state.ts';
import { type Rejection, rejectionCondition, tryConfiguration } from './trial.ts';

/** The part of the login node that the driver uses. */
type SimulatedLoginNode = Pick<
  LoginNode,
  'host' | 'port' | 'hostKey' | 'running' | 'setAccounts' | 'setJobs' | 'stop'
>;

export interface SimulatedSlurmOptions extends SimulatedOptions {
  /** The reason, as a sentence, why no login node may be started here. Then logins fail, and nothing is applied. */
  loginNodeRefusal?: string | undefined;
  /** Finds the machine's accounts that already have a uid or name of these accounts. */
  findOwners?: FindOwners;
  /** `accounts` reads the login accounts, at the start and whenever the login node needs them again. */
  startLoginNode(dataDir: string, accounts: () => Promise<readonly Account[]>): Promise<SimulatedLoginNode>;
  log: Logger;
}

const defaultApplyMs = 250;

/** Starts the cluster's login node, unless that is refused, and returns the cluster's driver. */
export async function createSimulatedSlurmDriver(options: SimulatedSlurmOptions): Promise<SlurmDriver> {
  const driver = new SimulatedSlurmDriver(options);
  await driver.startLoginNode();
  return driver;
}

class SimulatedSlurmDriver implements SlurmDriver {
  readonly followsSettings = true;
  readonly gatherMs = 0;
  readonly #options: SimulatedSlurmOptions;
  #state: SimulatedState;
  /** `desiredGeneration` of the last `apply`, if the settings made it fail. */
  #refused: number | undefined;
  /** The newest configuration, if the simulated slurmctld rejected it. */
  #rejected: Rejection | undefined;
  #loginNode: SimulatedLoginNode | undefined;
  /** An `apply` failed after it wrote the logins to disk: the login node may still have the former ones. */
  #isCutOff = false;
  #restart: Promise<void> | undefined;

  constructor(options: SimulatedSlurmOptions) {
    this.#options = options;
    this.#state = readState(options.dataDir);
    this.#state.startedAt ||= Date.now();
  }

  async startLoginNode(): Promise<void> {
    const { dataDir, loginNodeRefusal, startLoginNode } = this.#options;
    if (loginNodeRefusal === undefined)
      this.#loginNode = await startLoginNode(dataDir, async () => readLogins(dataDir));
  }

  async observe(): Promise<SlurmReport> {
    // A login node that died starts again, as a machine would; not during a restart, which would start a second one.
    if (this.#loginNode && !this.#loginNode.running && !this.#restart) await this.#restartLoginNode();
    const { foreign = noForeign } = this.#state;
    const { words } = await findForeign(foreign.accounts, this.#options.findOwners);
    // Read last: an observation that began earlier would otherwise bring back ended jobs.
    const settings = await this.#settings();
    const report = this.#report(settings);
    this.#loginNode?.setJobs(report.runningJobs ?? [], settings.gpusPerNode);
    return {
      ...report,
      failure: report.failure ?? foreign.words,
      ...(words === foreign.words ? {} : { drifted: true }),
    };
  }

  async apply(manifest: Manifest, signal: AbortSignal): Promise<void> {
    const { name, log, dataDir, findOwners } = this.#options;
    const settings = await this.#settings();
    const { failure } = settings;
    const { generation, desiredGeneration, schedulerGeneration, listVersion } = manifest;
    // The next report has the failure.
    this.#refused = failure === undefined ? undefined : desiredGeneration;
    if (failure !== undefined) {
      log.warn('simulated.refused', { cluster: name, desiredGeneration, failure });
      return;
    }
    const rejected = tryConfiguration(manifest, machineReports(name, settings));
    const isKnown = rejected && this.#rejected?.desiredGeneration === desiredGeneration;
    // A rejected configuration is tried once, and people's access is applied without it.
    if (isKnown && this.#state.manifestGeneration === generation) return;
    const before = readLogins(dataDir);
    const foreign = await findForeign(manifest.accounts, findOwners);
    const logins = manifest.accounts.filter(
      (one) => one.loginState === 'ready' && !foreign.accounts.includes(one),
    );
    const isOther = this.#isCutOff || textOf(logins) !== textOf(before);
    const inForce = rejected ? this.#state : manifest;
    const had = before.map(({ username }) => ({ username, loginState: 'ready' as const }));
    const configuration = { before: this.#state.slurmConfiguration, after: inForce.slurmConfiguration };
    const { restarts, added, removed } = restartPlan(had, logins, configuration);
    await sleep(settings.applyMs ?? defaultApplyMs, undefined, { signal });
    this.#isCutOff = isOther;
    if (isOther) writeLogins(dataDir, logins);
    if (restarts.length > 0) await this.#restartLoginNode();
    else if (isOther) await this.#loginNode?.setAccounts(logins);
    this.#isCutOff = false;
    this.#remember({
      manifestGeneration: generation,
      desiredGeneration: inForce.desiredGeneration,
      listVersion,
      slurmConfiguration: inForce.slurmConfiguration,
      jobsEnded: this.#state.jobsEnded || restarts.includes('compute'),
      startedAt: this.#state.startedAt,
      ...(foreign.words === null ? {} : { foreign }),
    });
    this.#rejected = rejected;
    log.info('simulated.applied', {
      ...{ cluster: name, generation, schedulerGeneration, restarts },
      added: added.length,
      removed: removed.length,
    });
  }

  async release(): Promise<void> {
    const { failure } = await reach(this.#options);
    if (failure !== undefined) throw new Error(failure);
    await this.#loginNode?.stop();
    this.#loginNode = undefined;
    this.#state = forgetState(this.#options.dataDir);
    this.#rejected = undefined;
  }

  async close(): Promise<void> {
    await this.#loginNode?.stop();
  }

  async #settings(): Promise<SimulatedSettings> {
    const settings = await reach(this.#options);
    const failure = settings.failure ?? this.#options.loginNodeRefusal;
    return failure === undefined ? settings : { ...settings, failure };
  }

  #restartLoginNode(): Promise<void> {
    const before = this.#restart;
    const done = (async () => {
      await before?.catch(() => undefined);
      if (this.#loginNode?.running) await this.#loginNode.stop();
      await this.startLoginNode();
    })().finally(() => {
      if (this.#restart === done) this.#restart = undefined;
    });
    this.#restart = done;
    return done;
  }

  #loginNodeReports(settings: SimulatedSettings): LoginNodeReport[] {
    if (!this.#loginNode) return [];
    const { host, port, hostKey, running: up } = this.#loginNode;
    if (settings.loginMode !== 'PerUser') return [{ name: 'login-1', host, port, hostKey, up }];
    const logins = readLogins(this.#options.dataDir);
    return logins.map(({ username }) => ({ name: `login-${username}`, host, port, hostKey, up, username }));
  }

  #remember(state: SimulatedState): void {
    writeState(this.#options.dataDir, state);
    this.#state = state;
  }

  #report(settings: SimulatedSettings): SlurmReport {
    const {
      manifestGeneration,
      desiredGeneration,
      listVersion,
      startedAt,
      foreign = noForeign,
    } = this.#state;
    const { name, loginNodeRefusal } = this.#options;
    const isOver = this.#state.jobsEnded && settings.requeue !== true;
    const runningJobs = isOver ? [] : (settings.runningJobs ?? []);
    const refused = this.#refused ?? (loginNodeRefusal === undefined ? undefined : desiredGeneration);
    const provisioned = isProvisioned(settings, startedAt, Date.now());
    const scheduler = schedulerReport('sunk', settings, { provisioned, refused });
    const rejected = settings.failure === undefined ? this.#rejected : undefined;
    return {
      ...{ manifestGeneration, desiredGeneration, listVersion },
      controlPlaneReady: provisioned,
      scheduler: rejected ? { ...scheduler, ready: rejectionCondition(rejected) } : scheduler,
      storage: storageReport('sunk', settings),
      kubernetes: kubernetesReport(name, settings, provisioned),
      machines: machineReports(name, settings, runningJobs),
      runningJobs: runningJobs.map((job) => ({
        ...job,
        gpus: job.machines.length * settings.gpusPerNode,
        startedAt: new Date(startedAt).toISOString(),
      })),
      pendingJobs: settings.pendingJobs ?? [],
      jobsArePrivate: false,
      usageIsPrivate: false,
      loginMode: settings.loginMode ?? 'Shared',
      loginNodes: this.#loginNodeReports(settings),
      accounts: foreign.accounts.map(withoutAccount),
      failure: rejected
        ? `The Slurm configuration was not taken: ${rejected.message}`
        : (settings.failure ?? null),
    };
  }
}

/** Permissions are not enforced. `scheduler` null: a cluster with nodes and an API, but without a scheduler. */
export function createSimulatedKubernetesDriver(
  options: SimulatedOptions & { scheduler: 'kubernetes' | null },
): KubernetesDriver {
  const { name, scheduler, dataDir } = options;
  let state = readState(dataDir);
  return {
    async observe(): Promise<KubernetesSideReport> {
      const settings = await reach(options);
      if (state.startedAt === 0) {
        state = { ...state, startedAt: Date.now() };
        writeState(dataDir, state);
      }
      const provisioned = isProvisioned(settings, state.startedAt, Date.now());
      return {
        controlPlaneReady: provisioned,
        scheduler: schedulerReport(scheduler, settings, {
          provisioned,
          refused: settings.failure === undefined ? undefined : 'current',
        }),
        storage: storageReport(scheduler, settings),
        kubernetes: kubernetesReport(name, settings, provisioned),
        machines: machineReports(name, settings),
        failure: settings.failure ?? null,
      };
    },
    async apply(access) {
      const { failure = null } = await reach(options);
      return { failure: null, retry: false, bound: failure === null ? permissionIds(access) : undefined };
    },
    async release() {
      const settings = await reach(options);
      if (settings.failure !== undefined) throw new Error(settings.failure);
      state = forgetState(dataDir);
    },
    followsSettings: true,
    gatherMs: 0,
    async close() {},
  };
}
