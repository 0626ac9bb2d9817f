/**
 * The simulated Slurm driver: a cluster that exists only here, with compute nodes made of numbers and a real login node
 * that people can log in to. It takes its time to apply, restarts what the contract says is restarted, remembers its
 * state on disk, and reports as a real one does. `kubernetes.ts` is the same without Slurm.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoginNodeReport, Manifest, SlurmReport } from '../../domain/access/manifest.ts';
import type { SimulatedSettings } from '../../domain/clusters/simulated.ts';
import { type RestartPlan, restartPlan } from '../../domain/slurm/restart-plan.ts';
import type { Logger } from '../../lib/log.ts';
import type { SlurmDriver } from '../driver.ts';
import { type FindOwners, type Foreign, findForeign, nobody, withoutAccount } from './foreign.ts';
import { isProvisioned, kubernetesReport, machineReports, schedulerReport, storageReport } from './knobs.ts';
import {
  forgetState,
  isReady,
  type LoginAccount,
  readLogins,
  readState,
  type SimulatedState,
  textOf,
  writeLogins,
  writeState,
} from './state.ts';
import { type Rejection, rejectionCondition, trialOf } from './trial.ts';

/** The login node, as far as the driver handles it. */
interface SimulatedLoginNode {
  readonly host: string;
  readonly port: number;
  readonly hostKey: string;
  readonly running: boolean;
  setAccounts(accounts: readonly LoginAccount[]): Promise<void>;
  stop(): Promise<void>;
}

export interface SimulatedSlurmOptions {
  name: string;
  /** The section of the lab file as it stands now; read each time, so that faults can come and go. */
  settings(): Promise<SimulatedSettings>;
  /** Where this cluster's state and its login node's homes live. */
  dataDir: string;
  /** A sentence: why no login node may be started here. No login is possible then, and nothing is applied. */
  loginNodeRefusal?: string | undefined;
  /** Finds what this machine has of the accounts' numbers and names already. */
  findOwners?: FindOwners;
  /** `accounts` reads who can log in, at the start and whenever the login node must know them again. */
  startLoginNode(
    dataDir: string,
    accounts: () => Promise<readonly LoginAccount[]>,
  ): Promise<SimulatedLoginNode>;
  log: Logger;
}

const defaultApplyMs = 250;

/** Starts the cluster's login node, unless that is refused, and drives the cluster from then on. */
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
  /** The configuration that was not applied last, where one was not. */
  #refused: number | undefined;
  /** The configuration that was tried and not taken, where the newest was not. */
  #rejected: Rejection | undefined;
  #loginNode: SimulatedLoginNode | undefined;
  /** An apply failed after it wrote who can log in, which the login node may not know yet. */
  #isCutOff = false;
  #restart: Promise<void> | undefined;

  constructor(options: SimulatedSlurmOptions) {
    this.#options = options;
    this.#state = readState(options.dataDir);
    this.#state.startedAt ||= Date.now();
  }

  async startLoginNode(): Promise<void> {
    const { dataDir, loginNodeRefusal } = this.#options;
    if (loginNodeRefusal !== undefined) return;
    this.#loginNode = await this.#options.startLoginNode(dataDir, () => readLogins(dataDir));
  }

  async observe(): Promise<SlurmReport> {
    const settings = this.#withRefusal(await this.#settings());
    // A login node that died starts again, as a machine would. During a restart, that would start a second one.
    if (this.#loginNode && !this.#loginNode.running && !this.#restart) await this.#restartLoginNode();
    const loginNodes = await this.#loginNodeReports(settings);
    const { foreign = nobody } = this.#state;
    const { words } = await findForeign(foreign.accounts, this.#options.findOwners);
    const report = this.#report(settings, loginNodes);
    return {
      ...report,
      accounts: [...report.accounts, ...foreign.accounts.map(withoutAccount)],
      failure: report.failure ?? foreign.words,
      ...(words === foreign.words ? {} : { drifted: true }),
    };
  }

  async apply(manifest: Manifest, signal: AbortSignal): Promise<void> {
    const { name, log, dataDir } = this.#options;
    const settings = this.#withRefusal(await this.#settings());
    const { failure } = settings;
    const { generation, desiredGeneration, schedulerGeneration } = manifest;
    // The next report says so.
    this.#refused = failure === undefined ? undefined : desiredGeneration;
    if (failure !== undefined) {
      log.warn('simulated.refused', { cluster: name, desiredGeneration, failure });
      return;
    }
    const message = trialOf(
      manifest.slurmConfiguration,
      new Set(machineReports(name, settings).map((machine) => machine.name)),
    );
    const rejected = message === undefined ? undefined : { desiredGeneration, message };
    const isKnown = rejected && this.#rejected?.desiredGeneration === desiredGeneration;
    // It is tried once, and people do not wait for it.
    if (isKnown && this.#state.manifestGeneration === generation) return;
    const before = await readLogins(dataDir);
    const foreign = await findForeign(manifest.accounts, this.#options.findOwners);
    const accounts =
      foreign.words === null
        ? manifest.accounts
        : manifest.accounts.filter((account) => !foreign.accounts.includes(account));
    const plan = restartPlan(before, accounts);
    const logins = accounts.filter(isReady);
    const isOther = this.#isCutOff || textOf(logins) !== textOf(before);
    const restarts =
      plan.restarts.length > 0 ? plan.restarts : rejected ? [] : this.#restartsOfConfiguration(manifest);
    await sleep(settings.applyMs ?? defaultApplyMs, undefined, { signal });
    this.#isCutOff = isOther;
    if (isOther) await writeLogins(dataDir, logins);
    if (restarts.length > 0) await this.#restartLoginNode();
    else if (isOther) await this.#loginNode?.setAccounts(logins);
    this.#isCutOff = false;
    await this.#remember(rejected ? this.#withoutConfiguration(manifest) : manifest, foreign, restarts);
    this.#rejected = rejected;
    log.info('simulated.applied', {
      cluster: name,
      generation,
      schedulerGeneration,
      added: plan.added.length,
      removed: plan.removed.length,
      restarts,
    });
  }

  async release(): Promise<void> {
    const { failure } = await this.#settings();
    if (failure !== undefined) throw new Error(failure);
    await this.#loginNode?.stop();
    this.#loginNode = undefined;
    this.#state = await forgetState(this.#options.dataDir);
    this.#rejected = undefined;
  }

  async close(): Promise<void> {
    await this.#loginNode?.stop();
  }

  /** The settings of a cluster that answers; one that does not throws. */
  async #settings(): Promise<SimulatedSettings> {
    const settings = await this.#options.settings();
    if (settings.silent) throw new Error(`the simulated cluster ${this.#options.name} does not answer`);
    return settings;
  }

  #withRefusal(settings: SimulatedSettings): SimulatedSettings {
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

  async #loginNodeReports(settings: SimulatedSettings): Promise<LoginNodeReport[]> {
    if (!this.#loginNode) return [];
    const { host, port, hostKey, running: up } = this.#loginNode;
    if (settings.loginMode !== 'PerUser') return [{ name: 'login-1', host, port, hostKey, up }];
    const logins = await readLogins(this.#options.dataDir);
    return logins.map(({ username }) => ({ name: `login-${username}`, host, port, hostKey, up, username }));
  }

  #restartsOfConfiguration({ slurmConfiguration: after }: Manifest): RestartPlan['restarts'] {
    return restartPlan([], [], { before: this.#state.slurmConfiguration, after }).restarts;
  }

  /** The manifest with the configuration that is in force. */
  #withoutConfiguration(manifest: Manifest): Manifest {
    const { desiredGeneration, slurmConfiguration } = this.#state;
    return { ...manifest, desiredGeneration, slurmConfiguration };
  }

  async #remember(manifest: Manifest, foreign: Foreign, restarts: RestartPlan['restarts']): Promise<void> {
    const { generation, desiredGeneration, listVersion, slurmConfiguration } = manifest;
    const { accounts: _, foreign: __, ...rest } = this.#state;
    const next: SimulatedState = {
      ...rest,
      manifestGeneration: generation,
      desiredGeneration,
      listVersion,
      slurmConfiguration,
      jobsEnded: this.#state.jobsEnded || restarts.includes('compute'),
      ...(foreign.words === null ? {} : { foreign }),
    };
    await writeState(this.#options.dataDir, next);
    this.#state = next;
  }

  #report(settings: SimulatedSettings, loginNodes: LoginNodeReport[]): SlurmReport {
    const { manifestGeneration, desiredGeneration, listVersion, accounts = [], startedAt } = this.#state;
    const { name, loginNodeRefusal } = this.#options;
    const runningJobs = this.#state.jobsEnded ? [] : (settings.runningJobs ?? []);
    const refused = this.#refused ?? (loginNodeRefusal === undefined ? undefined : desiredGeneration);
    const provisioned = isProvisioned(settings, startedAt, Date.now());
    const scheduler = schedulerReport('sunk', settings, { provisioned, refused });
    const rejected = settings.failure === undefined ? this.#rejected : undefined;
    return {
      manifestGeneration,
      desiredGeneration,
      listVersion,
      controlPlaneReady: provisioned,
      scheduler: rejected ? { ...scheduler, ready: rejectionCondition(rejected) } : scheduler,
      storage: storageReport('sunk', settings),
      kubernetes: kubernetesReport(name, settings, provisioned),
      machines: machineReports(name, settings, runningJobs),
      runningJobs,
      loginMode: settings.loginMode ?? 'Shared',
      loginNodes,
      accounts: accounts.map(({ userId, shell, loginState, keySetGeneration, keyFingerprints }) => ({
        userId,
        shell,
        loginState,
        keySetGeneration,
        keyFingerprints,
      })),
      failure: settings.failure ?? (rejected ? notTaken(rejected) : null),
    };
  }
}

function notTaken({ message }: Rejection): string {
  return `The Slurm configuration was not taken: ${message}`;
}
