/** A part of the composition root: the leader's work for all servers, which a server without others does too. */
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

/** All writes go through the lead's store, which rejects them once the lead is lost. */
export function leaderWork(deps: LeaderDeps): LeaderWork {
  const { config, peers, audit, sync, log, now } = deps;
  const { identity, access, dataDir, files, backup: settings } = config;
  const graceMs = config.gateway.limits.confirmGraceMs ?? defaultLimits.confirmGraceMs;
  return (lead) => {
    const { store } = lead;
    const { version } = manifest;
    // First, as it alone can fail at once.
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
      // After everything that writes entries.
      await stopAudit(why === 'left');
    };
  };
}

/**
 * After a take-over, late requests of the former leader may still reach a cluster: until it gave up, its client and
 * the API server each had their timeout for one (`sync/kubernetes/client.ts`).
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
/** Limit on rows in one transaction. */
const batch = 200;

/** Deletes expired sign-ins, console sessions and counts, in small parts. Returns a function that stops. */
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
