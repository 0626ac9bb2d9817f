/** How a person logs in to a cluster over SSH, and whether that works now (contract, "SSH access object"). */
import { loginModeOf, loginNodesFor } from '../domain/manifest.ts';
import { type AccessFacts, isObservationCurrent, readinessReason } from '../domain/readiness.ts';
import { findAccessList, findListPerson } from '../store/access-lists.ts';
import { findCluster } from '../store/clusters.ts';
import type { Reader } from '../store/index.ts';
import { findObservation, findObservedAccount, reportOf } from '../store/observations.ts';
import { listActiveFingerprints } from '../store/ssh-keys.ts';
import { fromTime } from '../store/time.ts';
import { whileUnchanged } from '../store/unchanged.ts';
import { requireClusterId, requireOwn, requirePermission } from './access.ts';
import type { PlatformDeps, PlatformReply, PlatformRequest } from './index.ts';

/** Always an answer for someone with `clusters.ssh`, ready or not. */
export async function getSshAccess(
  { store, gateway }: PlatformDeps,
  { caller, path, query, now }: PlatformRequest<'getSshAccess'>,
): Promise<PlatformReply<'getSshAccess'>> {
  const db = store.read;
  const { userId } = caller;
  const clusterId = requireClusterId(path.clusterId);
  await requirePermission(db, { userId, orgId: query.organizationId, permission: 'clusters.ssh' });
  // The same for everyone who asks.
  const { cluster, list, observation, report } = await whileUnchanged(store, `ssh-access/${clusterId}`, () =>
    clusterSide(db, clusterId),
  );
  requireOwn(cluster, query.organizationId);
  const [person, active, account] = await Promise.all([
    findListPerson(db, clusterId, userId),
    listActiveFingerprints(db, userId),
    findObservedAccount(db, clusterId, userId),
  ]);
  const username = person?.username ?? '';
  const takesAccessList = cluster.scheduler === 'sunk';
  const facts: AccessFacts = {
    clusterState: cluster.state,
    hasUsername: person !== undefined,
    activeKeys: active.length,
    keySetGeneration: person?.keySetGeneration ?? 0,
    observedKeySetGeneration: account?.ssh_key_set_generation ?? 0,
    takesAccessList,
    inManifest: person?.isAccepted ?? false,
    listGeneration: list?.generation ?? 0,
    observedManifestGeneration: observation?.manifest_generation ?? 0,
    gatewayUp: report !== undefined && loginNodesFor(report, username).length > 0,
    observedAt: observation && fromTime(observation.observed_at),
    now,
  };
  const reason = readinessReason(facts);
  const confirmed = JSON.parse(account?.key_fingerprints ?? '[]') as string[];
  return {
    // Without Slurm there is nothing to reach through the gateway.
    hostname: takesAccessList ? gateway.hostname : '',
    port: gateway.port,
    username,
    host_key: takesAccessList ? gateway.hostKey : '',
    host_key_fingerprint: takesAccessList ? gateway.fingerprint : '',
    login_mode: report ? loginModeOf(report) : 'Shared',
    ready: reason === 'ready',
    reason,
    manifest_generation: list?.accepted_generation ?? 0,
    observed_manifest_generation: facts.observedManifestGeneration,
    ssh_key_set_generation: facts.observedKeySetGeneration,
    key_fingerprints: confirmed.filter((fingerprint) => active.includes(fingerprint)),
    shell: account?.shell ?? '',
    observation_current: isObservationCurrent(facts),
    ...(observation ? { observed_at: observation.observed_at } : {}),
  };
}

async function clusterSide(db: Reader, clusterId: string) {
  const [cluster, list, observation] = await Promise.all([
    findCluster(db, clusterId),
    findAccessList(db, clusterId),
    findObservation(db, clusterId),
  ]);
  return { cluster, list, observation, report: observation && reportOf(observation) };
}
