/** How a person logs in to a cluster over SSH, and whether that works now (contract, "SSH access object"). */
import { decideAccess, isLapse } from '../../domain/access/decision.ts';
import { observationFreshnessMs } from '../../domain/access/list.ts';
import { DomainError } from '../../domain/error.ts';
import { findPersonOnCluster } from '../../store/access/access-facts.ts';
import { requireClusterId, requirePermission } from './access.ts';
import type { Operation } from './operation.ts';

/** Always an answer for someone with `clusters.ssh`, ready or not. */
export const getSshAccess: Operation<'getSshAccess'> = async (
  { store, gateway },
  { caller, path, query, now },
) => {
  const { userId } = caller;
  const clusterId = requireClusterId(path.clusterId);
  await requirePermission(store.read, {
    userId,
    organizationId: query.organizationId,
    permission: 'clusters.ssh',
    now,
  });
  const person = await findPersonOnCluster(store, clusterId, userId);
  if (person?.organizationId !== query.organizationId) {
    throw new DomainError('not_found', 'The organization has no such cluster.');
  }
  const { facts, generation, acceptedGeneration, observed, loginMode, waiting } = person;
  const decision = decideAccess(facts, { fingerprint: query.keyFingerprint });
  const ready = decision.allowed && gateway.fault === undefined;
  const reason = ready ? 'ready' : decision.allowed ? 'gateway_unavailable' : decision.readiness;
  // The permission was taken away since it was checked.
  if (reason === undefined)
    throw new DomainError('forbidden', 'This needs the permission clusters.ssh in the organization.');
  const isFresh = facts.observedMsAgo !== undefined && facts.observedMsAgo <= observationFreshnessMs;
  // Without Slurm there is nothing to reach through the gateway.
  const reachable = facts.takesAccessList;
  return {
    hostname: reachable ? gateway.hostname : '',
    port: gateway.port,
    username: facts.username ?? '',
    host_key: reachable ? gateway.hostKey : '',
    host_key_fingerprint: reachable ? gateway.fingerprint : '',
    ...(reachable && gateway.nextHostKey !== undefined ? { next_host_key: gateway.nextHostKey } : {}),
    login_mode: loginMode,
    ready,
    reason,
    ...(!decision.allowed && isLapse(decision.obstacle) && { lapsed: decision.message }),
    manifest_generation: acceptedGeneration,
    observed_manifest_generation: observed.manifestGeneration,
    ssh_key_set_generation: observed.keySetGeneration,
    key_fingerprints: observed.keyFingerprints.filter((key) => facts.activeKeys.includes(key)),
    shell: observed.shell,
    ...(waiting.length > 0 && {
      waiting_hosts: waiting.map(({ host, since = '', message }) => ({ host, since, message })),
    }),
    ...(facts.accessEndsAt !== null && { access_expires_at: facts.accessEndsAt }),
    observation_current: isFresh && observed.manifestGeneration >= generation,
    ...(observed.at === undefined ? {} : { observed_at: observed.at }),
  };
};
