/**
 * The driver of a real Kubernetes cluster. Owns the RBAC bindings that carry our labels and this cluster's ID, and
 * changes nothing else there; observes the cluster through the API server. It has no state that matters: what should be
 * there is handed to it, and what is there is read each time, so that the next pass completes one that was aborted.
 *
 *   apply:   access → wanted bindings → list ours → plan → write; in parallel, watches that ask for a pass (`watch.ts`)
 *   observe: /readyz, /version, nodes, storage, pods → report
 */
import type { KubernetesSideReport } from '../../domain/access/manifest.ts';
import type { UsernameRule } from '../../domain/kubernetes/bindings.ts';
import type { KubernetesSettings } from '../../domain/kubernetes/settings.ts';
import { present } from '../../domain/present.ts';
import type { Logger } from '../../lib/log.ts';
import type { KubernetesDriver } from '../driver.ts';
import { BindingApplier } from './apply.ts';
import { Connection, type KubernetesClient, reasonOf } from './client.ts';
import { createFaults } from './faults.ts';
import { type ClusterView, observeCluster, PodCounter } from './observe.ts';

export interface KubernetesOptions {
  clusterId: string;
  name: string;
  settings: KubernetesSettings;
  rule: Pick<UsernameRule, 'claim' | 'issuer'>;
  /** Called when something there changed by itself, or the API server answers again. */
  wake(): void;
  /** Asked right before each request that changes something there: throws where another server may look after it by now. */
  confirm?(): Promise<void>;
  log: Logger;
}

export function createKubernetesDriver(options: KubernetesOptions): KubernetesDriver {
  const { name, settings } = options;
  const connection = new Connection(settings, options.confirm);
  const pods = new PodCounter();
  const rule = { ...options.rule, prefix: settings.usernamePrefix };
  const applier = new BindingApplier({ ...options, rule, connection });
  const unreachable = (error: unknown) =>
    new Error(`The API server of ${name} cannot be reached: ${reasonOf(error)}`);
  return {
    followsSettings: false,
    gatherMs: 0,
    async apply(access, signal) {
      try {
        return await applier.apply(access, signal);
      } catch (error) {
        signal.throwIfAborted();
        await connection.close();
        throw new Error(reasonOf(error));
      }
    },
    async observe(signal) {
      const client = await connection.open().catch((error) => {
        throw new Error(reasonOf(error));
      });
      const faults = createFaults();
      const { subVolumeGroup } = settings;
      const view = await observeCluster(client, { subVolumeGroup, faults, pods }, signal).catch(
        async (error) => {
          await connection.close();
          throw unreachable(error);
        },
      );
      return reportOf(view, client, settings, faults.text() ?? null);
    },
    async release(signal) {
      const { failure } = await applier.removeAll(signal).catch(async (error) => {
        signal.throwIfAborted();
        await connection.close();
        throw unreachable(error);
      });
      if (failure !== null) throw new Error(failure);
    },
    async close() {
      applier.close();
      await connection.close();
    },
  };
}

function reportOf(
  view: ClusterView,
  client: KubernetesClient,
  settings: KubernetesSettings,
  failure: string | null,
): KubernetesSideReport {
  const isReady = view.ready.status === 'True';
  const { certificateAuthority } = client;
  return {
    controlPlaneReady: isReady,
    scheduler: {
      configured: 'kubernetes',
      ready: isReady && failure !== null ? { ...view.ready, message: failure } : view.ready,
    },
    storage: view.storage,
    kubernetes: {
      server: settings.publicServer ?? client.server,
      ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
      ready: isReady,
      ...(view.version === undefined ? {} : { version: view.version }),
      ...(view.kubeletVersion === undefined ? {} : { kubeletVersion: view.kubeletVersion }),
    },
    failure,
    ...present({ machines: view.machines, pods: view.pods }),
  };
}
