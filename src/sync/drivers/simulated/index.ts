/**
 * The simulated Slurm driver: a cluster that exists only here, with compute nodes made of numbers and a real login node
 * that people can log in to. It takes its time to apply, restarts what the contract says is restarted, remembers its
 * state on disk, and reports as a real one does. `kubernetes.ts` is the same without Slurm.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoginNodeReport, Manifest, ManifestAccount, SlurmReport } from '../../../domain/manifest.ts';
import { type RestartPlan, restartPlan } from '../../../domain/restart-plan.ts';
import type { SimulatedSettings } from '../../../domain/simulated.ts';
import { giveWay } from '../../../lib/event-loop.ts';
import type { Logger } from '../../../lib/log.ts';
import type { SlurmDriver } from '../../driver.ts';
import { type FindOwners, findForeign, nobody, withoutAccount } from './foreign.ts';
import { isProvisioned, kubernetesReport, machineReports, schedulerReport, storageReport } from './knobs.ts';
import {
  forgetState,
  type KnownAccount,
  type LoginAccount,
  type Logins,
  loginsOf,
  readLogins,
  readState,
  type SimulatedState,
  writeLogins,
  writeState,
} from './state.ts';

/** The embedded login node, as far as the driver handles it. */
export interface SimulatedLoginNode {
  readonly host: string;
  readonly port: number;
  readonly hostKey: string;
  readonly running: boolean;
  setAccounts(accounts: readonly LoginAccount[]): Promise<void>;
  stop(): Promise<void>;
}

export interface SimulatedSlurmOptions {
  name: string;
  /** The section of the lab file as it stands now; looked at each time, so that faults can come and go. */
  settings(): Promise<SimulatedSettings>;
  /** Where this cluster's state and its login node's homes live. */
  dataDir: string;
  /** In words, why no login node may be started here. Nobody can log in then, and nothing is applied. */
  loginNodeRefusal?: string | undefined;
  /** Whose the numbers of accounts are on this machine already, in words; of those that are free, nothing. */
  findOwners?: FindOwners;
  /** `accounts` reads who can log in, at the start and whenever the login node must know them again. */
  startLoginNode(
    dataDir: string,
    accounts: () => Promise<readonly LoginAccount[]>,
  ): Promise<SimulatedLoginNode>;
  log: Logger;
}

const defaultApplyMs = 250;

export async function createSimulatedSlurmDriver(options: SimulatedSlurmOptions): Promise<SlurmDriver> {
  const { name, dataDir, loginNodeRefusal, findOwners, log } = options;
  let state = readState(dataDir);
  state.startedAt ||= Date.now();
  // The last manifest's, which all clusters of an organization share in memory; after a start they are on disk only.
  let applied: readonly ManifestAccount[] | undefined;
  let refused: number | undefined;
  let loginNode: SimulatedLoginNode | undefined = await startLoginNode();

  async function startLoginNode(): Promise<SimulatedLoginNode | undefined> {
    if (loginNodeRefusal !== undefined) return undefined;
    return options.startLoginNode(dataDir, () => readLogins(dataDir));
  }

  let restart: Promise<void> | undefined;
  function restartLoginNode(): Promise<void> {
    const before = restart;
    const done = (async () => {
      await before?.catch(() => undefined);
      if (loginNode?.running) await loginNode.stop();
      loginNode = await startLoginNode();
    })().finally(() => {
      if (restart === done) restart = undefined;
    });
    restart = done;
    return done;
  }

  async function loginNodeReports(settings: SimulatedSettings): Promise<LoginNodeReport[]> {
    if (!loginNode) return [];
    const { host, port, hostKey, running: up } = loginNode;
    if (settings.loginMode !== 'PerUser') return [{ name: 'login-1', host, port, hostKey, up }];
    const logins = await readLogins(dataDir);
    return logins.map(({ username }) => ({ name: `login-${username}`, host, port, hostKey, up, username }));
  }

  /** The settings of a cluster that answers; one that does not throws. */
  async function reach(): Promise<SimulatedSettings> {
    const settings = await options.settings();
    if (settings.silent) throw new Error(`the simulated cluster ${name} does not answer`);
    return settings;
  }

  function withRefusal(settings: SimulatedSettings): SimulatedSettings {
    const failure = settings.failure ?? loginNodeRefusal;
    return failure === undefined ? settings : { ...settings, failure };
  }

  return {
    async observe(): Promise<SlurmReport> {
      const settings = withRefusal(await reach());
      // A login node that died is a machine that boots again. In a restart, another one would be one too many.
      if (loginNode && !loginNode.running && !restart) await restartLoginNode();
      const loginNodes = await loginNodeReports(settings);
      const isRefused = refused ?? (loginNodeRefusal === undefined ? undefined : state.desiredGeneration);
      const { foreign = nobody } = state;
      const drifted = (await findForeign(foreign.accounts, findOwners)).words !== foreign.words;
      const report = reportOf(options, state, settings, loginNodes, isRefused);
      return {
        ...report,
        accounts: [...report.accounts, ...foreign.accounts.map(withoutAccount)],
        failure: report.failure ?? foreign.words,
        ...(drifted ? { drifted } : {}),
      };
    },
    async apply(manifest: Manifest, signal: AbortSignal) {
      const settings = withRefusal(await reach());
      // It says so in its report.
      refused = settings.failure === undefined ? undefined : manifest.desiredGeneration;
      if (refused !== undefined) {
        log.warn('simulated.refused', {
          cluster: name,
          desiredGeneration: refused,
          failure: settings.failure,
        });
        return;
      }
      const { generation, desiredGeneration, schedulerGeneration, slurmConfiguration } = manifest;
      const before = applied ?? (await readLogins(dataDir));
      await giveWay();
      // Whoever had a number here keeps it.
      const had = new Set(before.filter(isReady).map(({ uid }) => uid));
      const foreign = await findForeign(
        manifest.accounts.filter(({ uid }) => !had.has(uid)),
        findOwners,
      );
      const accounts =
        foreign.words === null
          ? manifest.accounts
          : manifest.accounts.filter((account) => !foreign.accounts.includes(account));
      const change = compareAccounts(before, accounts);
      const { added, removed } = change.plan;
      const configuration = { before: state.slurmConfiguration, after: slurmConfiguration };
      const { restarts } = change.plan.restarts.length > 0 ? change.plan : restartPlan([], [], configuration);
      await sleep(settings.applyMs ?? defaultApplyMs, undefined, { signal });
      const { logins } = change;
      if (logins) await writeLogins(dataDir, logins);
      if (restarts.length > 0) await restartLoginNode();
      else if (logins) await loginNode?.setAccounts(logins.accounts);
      const { accounts: _, foreign: __, ...kept } = state;
      const next: SimulatedState = {
        ...kept,
        manifestGeneration: generation,
        desiredGeneration,
        listVersion: manifest.listVersion,
        slurmConfiguration,
        jobsEnded: state.jobsEnded || restarts.includes('compute'),
        ...(foreign.words === null ? {} : { foreign }),
      };
      await writeState(dataDir, next);
      state = next;
      applied = accounts;
      const accountsChanged = { added: added.length, removed: removed.length };
      log.info('simulated.applied', {
        cluster: name,
        generation,
        schedulerGeneration,
        ...accountsChanged,
        restarts,
      });
    },
    async release() {
      const settings = await reach();
      if (settings.failure !== undefined) throw new Error(settings.failure);
      await loginNode?.stop();
      loginNode = undefined;
      state = await forgetState(dataDir);
      applied = undefined;
    },
    followsSettings: true,
    gatherMs: 0,
    async close() {
      await loginNode?.stop();
    },
  };
}

interface AccountChange {
  plan: RestartPlan;
  /** Who can log in now, where that is someone else than before, or someone with another shell. */
  logins: Logins | undefined;
}

const compared = new WeakMap<
  readonly ManifestAccount[],
  { before: WeakRef<readonly KnownAccount[]>; change: AccountChange }
>();

/** What becomes of the accounts. The clusters of an organization ask the same, one after the other. */
function compareAccounts(before: readonly KnownAccount[], after: readonly ManifestAccount[]): AccountChange {
  const known = compared.get(after);
  if (known?.before.deref() === before) return known.change;
  const logins = hasOtherLogins(before, after) ? loginsOf(after.filter(isReady)) : undefined;
  const change = { plan: restartPlan(before, after), logins };
  compared.set(after, { before: new WeakRef(before), change });
  return change;
}

/** A person without an active key has no usable account. */
function isReady(account: KnownAccount): boolean {
  return account.loginState === 'ready';
}

function hasOtherLogins(before: readonly KnownAccount[], after: readonly KnownAccount[]): boolean {
  const had = before.filter(isReady);
  const has = after.filter(isReady);
  if (had.length !== has.length) return true;
  return has.some((account, index) => {
    const other = had[index];
    if (account === other) return false;
    return account.username !== other?.username || account.uid !== other.uid || account.shell !== other.shell;
  });
}

function reportOf(
  { name }: SimulatedSlurmOptions,
  state: SimulatedState,
  settings: SimulatedSettings,
  loginNodes: LoginNodeReport[],
  refused: number | undefined,
): SlurmReport {
  const { manifestGeneration, desiredGeneration, listVersion, accounts = [] } = state;
  const provisioned = isProvisioned(settings, state.startedAt, Date.now());
  return {
    manifestGeneration,
    desiredGeneration,
    listVersion,
    controlPlaneReady: provisioned,
    scheduler: schedulerReport('sunk', settings, { provisioned, refused }),
    storage: storageReport('sunk', settings),
    kubernetes: kubernetesReport(name, settings, provisioned),
    machines: machineReports(name, settings),
    runningJobs: state.jobsEnded ? [] : (settings.runningJobs ?? []),
    loginMode: settings.loginMode ?? 'Shared',
    loginNodes,
    accounts: accounts.map(({ userId, shell, loginState, keySetGeneration, keyFingerprints }) => ({
      userId,
      shell,
      loginState,
      keySetGeneration,
      keyFingerprints,
    })),
    failure: settings.failure ?? null,
  };
}
