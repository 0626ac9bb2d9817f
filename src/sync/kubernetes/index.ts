/**
 * The driver of a real Kubernetes cluster. Owns the RBAC bindings with our labels and this cluster's ID, and changes nothing
 * else there; observes the cluster through the API server. Its state is only a cache: it gets the wanted permissions and
 * reads the present bindings on each pass, so that the next pass completes an aborted one.
 *
 * apply:   access → wanted bindings → list ours → plan → write; in parallel, watches that request passes (`watch.ts`)
 *   observe: /readyz, /version, nodes, storage, pods → report
 */
import type { KubernetesSideReport } from '../../domain/access/manifest.ts';
import type { UsernameRule } from '../../domain/kubernetes/bindings.ts';
import type { KubernetesSettings } from '../../domain/kubernetes/settings.ts';
import { present } from '../../domain/present.ts';
import type { KubernetesDriver } from '../driver.ts';
import { type ApplyOptions, BindingApplier } from './apply.ts';
import { KubernetesClient, reasonOf } from './client.ts';
import type { Credentials } from './credentials.ts';
import { Faults } from './faults.ts';
import { observeCluster, PodCounter } from './observe.ts';

export interface KubernetesOptions extends Omit<ApplyOptions, 'rule' | 'client'> {
  settings: KubernetesSettings;
  rule: Pick<UsernameRule, 'claim' | 'issuer'>;
  /** Called before each request that changes something; throws when another server may lead by now. */
  confirm?(): Promise<void>;
}

export function createKubernetesDriver(options: KubernetesOptions): KubernetesDriver {
  const { name, settings } = options;
  const client = new KubernetesClient(settings, options.confirm);
  const pods = new PodCounter();
  const rule = { ...options.rule, prefix: settings.usernamePrefix };
  const applier = new BindingApplier({ ...options, rule, client });
  const reached = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error) => {
      throw new Error(`The API server of ${name} cannot be reached: ${reasonOf(error)}`.replace(/\.?$/, '.'));
    });
  return {
    followsSettings: false,
    gatherMs: 0,
    apply: (access, signal, superseded = new AbortController().signal) =>
      reached(applier.apply(access, signal, superseded)),
    async observe(signal) {
      const { credentials } = await client.open(signal).catch((error) => {
        throw new Error(reasonOf(error));
      });
      const faults = new Faults();
      const { subVolumeGroup } = settings;
      const view = await reached(observeCluster(client, { subVolumeGroup, faults, pods }, signal));
      return reportOf(view, credentials, settings, faults.text());
    },
    async release(signal) {
      const failure = await reached(applier.removeAll(signal));
      if (failure !== null) throw new Error(failure);
    },
    async close() {
      applier.close();
      await client.close();
    },
  };
}

function reportOf(
  view: Awaited<ReturnType<typeof observeCluster>>,
  { server, certificateAuthority, tlsServerName }: Credentials,
  settings: KubernetesSettings,
  failure: string | null,
): KubernetesSideReport {
  const isReady = view.ready.status === 'True';
  const { publicServer } = settings;
  return {
    controlPlaneReady: isReady,
    scheduler: {
      configured: 'kubernetes',
      ready: isReady && failure !== null ? { ...view.ready, message: failure } : view.ready,
    },
    storage: view.storage,
    kubernetes: {
      server: publicServer ?? server,
      ready: isReady,
      ...present({
        certificateAuthority,
        // The name in the server's certificate, if it differs from the address that we use.
        tlsServerName: publicServer === undefined ? tlsServerName : undefined,
        version: view.version,
        kubeletVersion: view.kubeletVersion,
      }),
    },
    failure,
    ...present({ machines: view.machines, pods: view.pods }),
  };
}
