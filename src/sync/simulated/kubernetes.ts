/** The simulated Kubernetes driver: a cluster that exists only here. Who may do what there is not checked. */
import type { KubernetesSideReport } from '../../domain/access/manifest.ts';
import { permissionIds } from '../../domain/kubernetes/bindings.ts';
import type { KubernetesDriver } from '../driver.ts';
import {
  isProvisioned,
  kubernetesReport,
  machineReports,
  reach,
  type SimulatedOptions,
  schedulerReport,
  storageReport,
} from './knobs.ts';
import { forgetState, readState, writeState } from './state.ts';

/** `scheduler`: null where it has nodes and an API, and no scheduler. */
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
