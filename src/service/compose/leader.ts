/** A part of the composition root: what the leader does for all servers, which is this one where there can be no other. */
import manifest from '../../../package.json' with { type: 'json' };
import { librarySeconds } from '../../api/identity/issuer/adapter.ts';
import { consoleSessionsEnd } from '../../console/server/sessions.ts';
import { allKeys } from '../../domain/key-rotation.ts';
import { defaultLimits } from '../../gateway/ssh/limits.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { forgetPresumed } from '../../store/audit/open-sessions.ts';
import type { Store } from '../../store/engine/index.ts';
import { deleteOldConsoleSessions } from '../../store/people/console-sessions.ts';
import { deleteExpiredIssuerRecords } from '../../store/people/issuer-records.ts';
import type { Lead } from '../../store/servers/leader.ts';
import { deleteExpiredCounts } from '../../store/servers/limit-counts.ts';
import { type SyncLoop, startSyncLoop } from '../../sync/index.ts';
import { startBackups } from '../backup/index.ts';
import { createKubernetesSide, createSlurmSide, subjectIssuer } from './drivers.ts';
import { applyGroupRules } from './group-rules.ts';
import type { Parts } from './parts.ts';
import type { LeaderWork } from './peers/leading.ts';
import { closeSessionsOfGone } from './peers/sessions.ts';
import { announceEnds, startMemberReviews, warnOfLapses } from './permission-ends.ts';

type LeaderDeps = Pick<
  Parts,
  'config' | 'keys' | 'store' | 'peers' | 'gateways' | 'audit' | 'sync' | 'log' | 'now'
>;

/** All that is written goes through the store of the lead. */
export function leaderWork(deps: LeaderDeps): LeaderWork {
  const { config, peers, audit, sync, log, now } = deps;
  const { identity, access, dataDir, files, backup: settings } = config;
  const graceMs = config.gateway.limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  return (lead) => {
    const { store } = lead;
    const { version } = manifest;
    // First, as it is all that can fail at once.
    const stopBackups = startBackups({ settings, dataDir, version, elsewhere: () => files, log, now });
    const loop = startSync(lead, deps);
    sync.loop = loop;
    const { reviewMonths: months } = access;
    const stops = [
      () => loop.stop(),
      warnOfLapses(store, log),
      applyGroupRules({ store, groups: identity.groups, log }),
      ...(months === undefined ? [] : [startMemberReviews({ store, months, log, now })]),
      announceEnds({ store, intervalMs: config.sync.intervalMs, log, now }),
      startSweeps(store, { log, now }),
      peers.forOthers(() => closeSessionsOfGone({ store, graceMs, log })),
      stopBackups,
    ];
    const stopAudit = audit.keep(store);
    return async (why) => {
      if (sync.loop === loop) delete sync.loop;
      await Promise.all(stops.map((stop) => stop?.()));
      // Behind everything that writes entries.
      await stopAudit(why === 'left');
    };
  };
}

/**
 * After a take-over, requests of the leader before may still come to a cluster: until it gave up, the client and the API server
 * have had their time for one (`sync/kubernetes/client.ts`).
 */
const lateWritesMs = 20_000;

function startSync(lead: Lead, deps: LeaderDeps): SyncLoop {
  const { config, keys, gateways, log, now } = deps;
  const { store, confirm } = lead;
  return startSyncLoop({
    store,
    drivers: {
      slurm: (cluster) =>
        createSlurmSide(cluster, lead, {
          ...deps,
          gatewayKeys: () => allKeys(keys.of('client')).map(({ publicKey }) => publicKey),
          endSessions: (loginNode) => {
            const text = 'The login node is restarting. Log in again in a moment.';
            gateways.close({ clusterId: cluster.id, loginNode }, 'login_node_restarting', text);
          },
        }),
      kubernetes: (cluster, wake) => createKubernetesSide(cluster, wake, { config, store, confirm, log }),
    },
    subjectIssuer: subjectIssuer(config),
    intervalMs: config.sync.intervalMs,
    againMs: lead.token === undefined ? undefined : lateWritesMs,
    recheckSessions: (clusterId) => gateways.recheck({ clusterId }),
    log,
    now,
  });
}

const sweepMs = 5 * 60_000;
/** Rows of one transaction. */
const batch = 200;

/** Deletes what has expired of sign-ins, sessions of the console and counts, in small parts. Returns how to stop. */
export function startSweeps(store: Store, { log, now }: { log: Logger; now(): number }): () => Promise<void> {
  const sweep = async (stopping: AbortSignal) => {
    let most = batch;
    while (most === batch && !stopping.aborted)
      most = await store.write(async (tx) =>
        Math.max(
          await deleteExpiredIssuerRecords(tx, librarySeconds(), batch),
          await deleteExpiredCounts(tx, batch),
          await deleteOldConsoleSessions(tx, consoleSessionsEnd(now()), batch),
          await forgetPresumed(tx, now(), batch),
        ),
      );
  };
  const onFault = (error: unknown) => log.error('sweep.failed', { error });
  return startRounds(sweep, { everyMs: sweepMs, onFault }).stop;
}
