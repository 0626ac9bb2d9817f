/**
 * The driver of a real Kubernetes cluster. Owns the RBAC bindings that carry our labels and this cluster's ID, and
 * changes nothing else there; asks the API server how the cluster is. Keeps nothing that matters: what should be there
 * is in the store, what is there is asked for, so that a pass that is cut off is made good by the next.
 *
 *   access (store) → wanted bindings → list ours → plan → write     (permit, every pass)
 *   /readyz, /version, nodes, storage → report                      (observe)
 */
import {
  type KubernetesAccess,
  knownClaims,
  type UsernameRule,
  wantedBindings,
} from '../../../domain/kubernetes-bindings.ts';
import type { KubernetesSettings } from '../../../domain/kubernetes-settings.ts';
import type { Manifest, Report } from '../../../domain/manifest.ts';
import type { Logger } from '../../../log.ts';
import type { Driver } from '../../driver.ts';
import { type KubernetesClient, openClient } from './client.ts';
import { createFaults } from './faults.ts';
import { observeCluster } from './observe.ts';
import { settleBindings } from './permissions.ts';
import { reasonOf } from './reason.ts';

export interface KubernetesOptions {
  clusterId: string;
  name: string;
  settings: KubernetesSettings;
  /** What people hold there at this moment. */
  access(): Promise<KubernetesAccess>;
  rule: Pick<UsernameRule, 'claim' | 'issuer'>;
  log: Logger;
}

/** How often a look is taken again at once when something changed under our hands. */
const rounds = 3;

/** What there is of Slurm: nothing. */
const blank = {
  manifestGeneration: 0,
  runningJobs: [],
  loginNodes: [],
  accounts: [],
  failure: null,
} satisfies Partial<Report>;

/** Settings that lead to no API server are no fault of the cluster, and are said where operators look. */
function unusable(message: string, desiredGeneration: number): Report {
  return {
    ...blank,
    desiredGeneration,
    controlPlaneReady: false,
    scheduler: {
      configured: 'kubernetes',
      ready: { status: 'Unknown', reason: 'SettingsUnusable', message },
    },
    kubernetesFailure: message,
  };
}

export function createKubernetesDriver(options: KubernetesOptions): Driver {
  const { clusterId, name, settings, log } = options;
  const rule = { ...options.rule, prefix: settings.usernamePrefix };
  let client: Promise<KubernetesClient> | undefined;
  let desiredGeneration = 0;
  let failure: string | undefined;

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

  async function settle(access: KubernetesAccess, signal: AbortSignal): Promise<string | undefined> {
    const server = await connect();
    const wanted = wantedBindings(clusterId, access, rule);
    for (let round = 1; ; round++) {
      const faults = createFaults();
      const { change, again } = await settleBindings({ client: server, clusterId, faults, signal }, wanted);
      if (change.created + change.repaired + change.removed > 0) {
        log.info('kubernetes.permitted', { cluster: name, ...change });
      }
      if (!again || round === rounds) return faults.text();
    }
  }

  return {
    async permit(signal) {
      try {
        const words = await settle(await options.access(), signal);
        failure = knownClaims.includes(rule.claim)
          ? words
          : `identity.kubernetes.usernameClaim is ${rule.claim}, by which nobody is known here: it can be ${knownClaims.join(', ')}.`;
      } catch (error) {
        if (signal.aborted && (signal.reason as Error).name !== 'TimeoutError') throw error;
        await reconnect();
        failure = `People's permissions could not be changed: ${reasonOf(error)}`;
      }
    },
    async observe(signal): Promise<Report> {
      let server: KubernetesClient;
      try {
        server = await connect();
      } catch (error) {
        return unusable(reasonOf(error), desiredGeneration);
      }
      const faults = createFaults();
      const { subVolumeGroup } = settings;
      const view = await observeCluster(server, { subVolumeGroup, faults }, signal).catch(async (error) => {
        await reconnect();
        throw new Error(`The API server of ${name} cannot be reached: ${reasonOf(error)}`);
      });
      if (view.ready.reason === 'CredentialsRefused') await reconnect();
      const words = [...new Set([faults.text(), failure])].filter((text) => text !== undefined).join(' ');
      const ready = view.ready.status === 'True';
      const { certificateAuthority } = server;
      return {
        ...blank,
        desiredGeneration,
        controlPlaneReady: ready,
        scheduler: {
          configured: 'kubernetes',
          ready: ready && words !== '' ? { ...view.ready, message: words } : view.ready,
        },
        storage: view.storage,
        kubernetes: {
          server: settings.publicServer ?? server.server,
          ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
          ready,
          ...(view.version === undefined ? {} : { version: view.version }),
          ...(view.kubeletVersion === undefined ? {} : { kubeletVersion: view.kubeletVersion }),
        },
        ...(words === '' ? {} : { kubernetesFailure: words }),
        ...(view.machines === undefined ? {} : { machines: view.machines }),
      };
    },
    /** There is no list and no configuration to apply: people's permissions are looked at in every pass. */
    async apply(manifest: Manifest) {
      desiredGeneration = manifest.desiredGeneration;
    },
    async release(signal) {
      const left = await settle({ members: [], grants: [] }, signal).catch(async (error) => {
        signal.throwIfAborted();
        await reconnect();
        return `The API server of ${name} cannot be reached: ${reasonOf(error)}`;
      });
      if (left !== undefined) throw new Error(left);
    },
    close: reconnect,
  };
}
