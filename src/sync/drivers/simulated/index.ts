/**
 * The simulated driver: a cluster that exists only here, with compute nodes made of numbers and, where it runs Slurm,
 * a real login node that people can log in to. It takes its time to apply, restarts what the contract says is
 * restarted, remembers its state on disk, and reports as a real one does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Manifest, ManifestAccount, Report } from '../../../domain/manifest.ts';
import { restartPlan } from '../../../domain/restart-plan.ts';
import type { Logger } from '../../../log.ts';
import type { Driver } from '../../driver.ts';
import { readState, type SimulatedState, writeState } from './state.ts';

/** The lab file's `simulated` section. */
export interface SimulatedSettings {
  computeNodes: number;
  gpusPerNode: number;
  /** How long applying a manifest takes. */
  applyMs?: number;
}

/** The embedded login node, as far as the driver handles it. */
export interface SimulatedLoginNode {
  readonly host: string;
  readonly port: number;
  readonly hostKey: string;
  readonly running: boolean;
  setAccounts(accounts: readonly ManifestAccount[]): Promise<void>;
  stop(): Promise<void>;
}

export interface SimulatedOptions {
  name: string;
  scheduler: 'sunk' | 'kubernetes' | null;
  settings: SimulatedSettings;
  /** Where this cluster's state and its login node's homes live. */
  dataDir: string;
  startLoginNode(dataDir: string, accounts: readonly ManifestAccount[]): Promise<SimulatedLoginNode>;
  log: Logger;
}

const defaultApplyMs = 250;

export async function createSimulatedDriver(options: SimulatedOptions): Promise<Driver> {
  const { settings, dataDir, log } = options;
  let state = readState(dataDir);
  let loginNode = await startLoginNode();

  async function startLoginNode(): Promise<SimulatedLoginNode | undefined> {
    if (options.scheduler !== 'sunk') return undefined;
    return options.startLoginNode(dataDir, loginAccounts(state.accounts));
  }

  async function restart(accounts: readonly ManifestAccount[]): Promise<void> {
    await loginNode?.stop();
    loginNode = await options.startLoginNode(dataDir, loginAccounts(accounts));
  }

  return {
    async observe(): Promise<Report> {
      // A login node that died is a machine that boots again.
      if (loginNode && !loginNode.running) loginNode = await startLoginNode();
      return reportOf(state, settings, loginNode);
    },
    async apply(manifest: Manifest, signal: AbortSignal) {
      const { restarts, added, removed } = restartPlan(state.accounts, manifest.accounts);
      await sleep(settings.applyMs ?? defaultApplyMs, undefined, { signal });
      if (restarts.length > 0) await restart(manifest.accounts);
      else await loginNode?.setAccounts(loginAccounts(manifest.accounts));
      const { generation, desiredGeneration, accounts } = manifest;
      const next: SimulatedState = {
        manifestGeneration: generation,
        desiredGeneration,
        accounts: [...accounts],
      };
      writeState(dataDir, next);
      state = next;
      log.info('simulated.applied', { cluster: options.name, generation, added, removed, restarts });
    },
    async close() {
      await loginNode?.stop();
    },
  };
}

/** A person without an active key has no usable account. */
function loginAccounts(accounts: readonly ManifestAccount[]): ManifestAccount[] {
  return accounts.filter((account) => account.loginState === 'ready');
}

function reportOf(
  state: SimulatedState,
  settings: SimulatedSettings,
  loginNode: SimulatedLoginNode | undefined,
): Report {
  const { manifestGeneration, desiredGeneration, accounts } = state;
  return {
    manifestGeneration,
    desiredGeneration,
    controlPlaneReady: true,
    computeNodes: settings.computeNodes,
    loginNodes: loginNode
      ? [
          {
            name: 'login-1',
            host: loginNode.host,
            port: loginNode.port,
            hostKey: loginNode.hostKey,
            up: loginNode.running,
          },
        ]
      : [],
    accounts: accounts.map(({ userId, shell, loginState, keySetGeneration, keyFingerprints }) => ({
      userId,
      shell,
      loginState,
      keySetGeneration,
      keyFingerprints,
    })),
    failure: null,
  };
}
