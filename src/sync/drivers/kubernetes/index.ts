/**
 * The driver of a real Kubernetes cluster. Owns the RBAC bindings that carry our labels and this cluster's ID, and
 * changes nothing else there; asks the API server how the cluster is. Keeps nothing that matters: what should be there
 * is handed to it, what is there is asked for, so that a pass that is cut off is made good by the next.
 *
 *   apply:   access → wanted bindings → list ours → plan → write; beside it, watches that ask for a pass (`watch.ts`)
 *   observe: /readyz, /version, nodes, storage → report
 */
import {
  type KubernetesAccess,
  keyOf,
  knownClaims,
  permissionIdOf,
  type UsernameRule,
  wantedBindings,
} from '../../../domain/kubernetes-bindings.ts';
import type { KubernetesSettings } from '../../../domain/kubernetes-settings.ts';
import type { KubernetesSideReport } from '../../../domain/manifest.ts';
import type { Logger } from '../../../lib/log.ts';
import type { KubernetesDriver, KubernetesOutcome } from '../../driver.ts';
import { type KubernetesClient, openClient } from './client.ts';
import { createFaults } from './faults.ts';
import { observeCluster } from './observe.ts';
import { settleBindings } from './permissions.ts';
import { reasonOf } from './reason.ts';
import { type Expected, startWatching } from './watch.ts';

export interface KubernetesOptions {
  clusterId: string;
  name: string;
  settings: KubernetesSettings;
  rule: Pick<UsernameRule, 'claim' | 'issuer'>;
  /** Called when something there changed by itself, or the API server answers again. */
  wake(): void;
  log: Logger;
}

/** How often a look is taken again at once when something changed under our hands. */
const rounds = 3;
/** How often all bindings are looked at, for ours that somebody took a label off. */
const thoroughMs = 300_000;

/** Settings that lead to no API server are no fault of the cluster, and are said where operators look. */
function unusable(message: string): KubernetesSideReport {
  return {
    controlPlaneReady: false,
    scheduler: {
      configured: 'kubernetes',
      ready: { status: 'Unknown', reason: 'SettingsUnusable', message },
    },
    failure: message,
  };
}

export function createKubernetesDriver(options: KubernetesOptions): KubernetesDriver {
  const { clusterId, name, settings, log } = options;
  const rule = { ...options.rule, prefix: settings.usernamePrefix };
  const claimFault = knownClaims.includes(rule.claim)
    ? null
    : `identity.kubernetes.usernameClaim is ${rule.claim}, by which nobody is known here: it can be ${knownClaims.join(', ')}.`;
  const watching = new AbortController();
  let isWatching = false;
  let expected: Expected = { bindings: new Map(), namespaces: new Set() };
  /** When all bindings were looked at last, and not only those with our labels. */
  let thoroughAt = Number.NEGATIVE_INFINITY;
  let client: Promise<KubernetesClient> | undefined;

  /** Made when it is first needed; settings that cannot be used are tried again, as the files may come. */
  function connect(): Promise<KubernetesClient> {
    client ??= openClient(settings).catch((error) => {
      client = undefined;
      throw error;
    });
    return client;
  }

  /** What the files say may be something else by now. */
  async function reconnect(): Promise<void> {
    const before = client;
    client = undefined;
    await (await before?.catch(() => undefined))?.close();
  }

  async function settle(access: KubernetesAccess, signal: AbortSignal): Promise<KubernetesOutcome> {
    const server = await connect().catch((error) => ({
      failure: reasonOf(error),
      retry: false,
      bound: undefined,
    }));
    // It is worth trying again when the settings or the files changed, as every interval does.
    if ('failure' in server) return server;
    const wanted = wantedBindings(clusterId, access, rule);
    const bindings = new Map(wanted.map((binding) => [keyOf(binding), binding]));
    const isLess = expected.bindings.keys().some((key) => !bindings.has(key));
    let isThorough = isLess || performance.now() - thoroughAt > thoroughMs;
    expected = { ...expected, bindings };
    if (!isWatching)
      startWatching({ clusterId, connect, expected: () => expected, wake: options.wake }, watching.signal);
    isWatching = true;
    for (let round = 1; ; round++) {
      const faults = createFaults();
      const pass = { client: server, clusterId, isThorough, faults, signal };
      const { change, again, isNameTaken, waiting, bound } = await settleBindings(pass, wanted);
      expected = { bindings, namespaces: waiting };
      if (isThorough) thoroughAt = performance.now();
      if (change.created + change.repaired + change.removed > 0) {
        log.info('kubernetes.permitted', { cluster: name, ...change });
      }
      // What has the name may be ours without our labels.
      const isDoubtful = isNameTaken && !isThorough;
      isThorough ||= isNameTaken;
      if ((again || isDoubtful) && round < rounds) continue;
      return {
        failure: claimFault ?? faults.text() ?? null,
        retry: faults.mayPass(),
        bound: bound.map((one) => permissionIdOf(one, clusterId)),
      };
    }
  }

  return {
    followsSettings: false,
    gatherMs: 0,
    async apply(access, signal) {
      try {
        return await settle(access, signal);
      } catch (error) {
        signal.throwIfAborted();
        await reconnect();
        throw new Error(reasonOf(error));
      }
    },
    async observe(signal): Promise<KubernetesSideReport> {
      let server: KubernetesClient;
      try {
        server = await connect();
      } catch (error) {
        return unusable(reasonOf(error));
      }
      const faults = createFaults();
      const { subVolumeGroup } = settings;
      const view = await observeCluster(server, { subVolumeGroup, faults }, signal).catch(async (error) => {
        await reconnect();
        throw new Error(`The API server of ${name} cannot be reached: ${reasonOf(error)}`);
      });
      if (view.ready.reason === 'CredentialsRefused') await reconnect();
      const failure = faults.text() ?? null;
      const ready = view.ready.status === 'True';
      const { certificateAuthority } = server;
      return {
        controlPlaneReady: ready,
        scheduler: {
          configured: 'kubernetes',
          ready: ready && failure !== null ? { ...view.ready, message: failure } : view.ready,
        },
        storage: view.storage,
        kubernetes: {
          server: settings.publicServer ?? server.server,
          ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
          ready,
          ...(view.version === undefined ? {} : { version: view.version }),
          ...(view.kubeletVersion === undefined ? {} : { kubeletVersion: view.kubeletVersion }),
        },
        failure,
        ...(view.machines === undefined ? {} : { machines: view.machines }),
      };
    },
    async release(signal) {
      thoroughAt = Number.NEGATIVE_INFINITY;
      const { failure } = await settle({ members: [], grants: [] }, signal).catch(async (error) => {
        signal.throwIfAborted();
        await reconnect();
        throw new Error(`The API server of ${name} cannot be reached: ${reasonOf(error)}`);
      });
      if (failure !== null) throw new Error(failure);
    },
    async close() {
      watching.abort();
      await reconnect();
    },
  };
}
