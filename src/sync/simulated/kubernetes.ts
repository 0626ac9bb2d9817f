/** The simulated Kubernetes driver: a cluster that exists only here. Who may do what there is not checked. */
import type { KubernetesSideReport } from '../../domain/access/manifest.ts';
import type { SimulatedSettings } from '../../domain/clusters/simulated.ts';
import { permissionIds } from '../../domain/kubernetes/bindings.ts';
import type { KubernetesDriver } from '../driver.ts';
import { isProvisioned, kubernetesReport, machineReports, schedulerReport, storageReport } from './knobs.ts';
import { forgetState, readState, writeState } from './state.ts';

export interface SimulatedKubernetesOptions {
  name: string;
  /** Null: it has nodes and an API, and no scheduler. */
  scheduler: 'kubernetes' | null;
  /** The section of the lab file as it stands now; read each time, so that faults can come and go. */
  settings(): Promise<SimulatedSettings>;
  /** Where this cluster's state lives. */
  dataDir: string;
}

export function createSimulatedKubernetesDriver(options: SimulatedKubernetesOptions): KubernetesDriver {
  const { name, scheduler, dataDir } = options;
  let state = readState(dataDir);

  /** The settings of a cluster that answers; one that does not throws. */
  async function reach(): Promise<SimulatedSettings> {
    const settings = await options.settings();
    if (settings.silent) throw new Error(`the simulated cluster ${name} does not answer`);
    return settings;
  }

  return {
    async observe(): Promise<KubernetesSideReport> {
      const settings = await reach();
      if (state.startedAt === 0) {
        state = { ...state, startedAt: Date.now() };
        await writeState(dataDir, state);
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
      const { failure = null } = await reach();
      return { failure: null, retry: false, bound: failure === null ? permissionIds(access) : undefined };
    },
    async release() {
      const settings = await reach();
      if (settings.failure !== undefined) throw new Error(settings.failure);
      state = await forgetState(dataDir);
    },
    followsSettings: true,
    gatherMs: 0,
    async close() {},
  };
}
