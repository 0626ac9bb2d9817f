/** Metrics of the sync loop. Ages are per side of each cluster, and grow while it sends nothing. */
import type { LogEvents } from '../../../lib/log.ts';
import type { Counts, Kinds, MetricName } from './metric-kinds.ts';

const slow = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

type Side = Pick<LogEvents['sync.released'], 'cluster' | 'side'>;

export function syncCounts(kinds: Kinds, now: () => number): Counts {
  const passSeconds = kinds.histogram('andromeda_sync_pass_seconds', slow, 'outcome');
  const convergenceSeconds = kinds.histogram('andromeda_sync_convergence_seconds', slow);
  const passed = ages(kinds, 'andromeda_sync_lag_seconds', now);
  const observed = ages(kinds, 'andromeda_sync_observed_age_seconds', now);
  const behind = ages(kinds, 'andromeda_sync_unapplied_seconds', now);
  const waitingSince = ages(kinds, 'andromeda_sync_waiting_hosts_seconds', now);
  const waitingHosts = kinds.gauge('andromeda_sync_waiting_hosts', 'cluster', 'side');
  const nodesDown = kinds.gauge('andromeda_login_nodes_down', 'cluster');
  const forget = ({ cluster, side }: Side) => {
    for (const one of [passed, observed, behind, waitingSince]) one.delete({ cluster, side });
    waitingHosts.remove({ cluster, side });
    if (side === 'slurm') nodesDown.remove({ cluster });
  };
  return {
    'sync.changed': (about) => behind.begin(about),
    'sync.observed': ({ waiting, cluster, side }) => {
      observed.set({ cluster, side }, now());
      waitingHosts.set({ cluster, side }, waiting);
      if (waiting === 0) waitingSince.set({ cluster, side }, undefined);
      else waitingSince.begin({ cluster, side });
    },
    'sync.login_nodes': ({ cluster, down }) => nodesDown.set({ cluster }, down),
    'sync.passed': ({ ms, behindMs, ...about }) => {
      passed.set(about, now());
      behind.set(about, behindMs === 0 ? undefined : now() - behindMs);
      passSeconds.observe({ outcome: 'done' }, ms / 1000);
    },
    'sync.failed': ({ ms, behindMs, ...about }) => {
      // One that never went well has been lagging since it was first tried.
      passed.begin(about);
      observed.begin(about);
      behind.set(about, behindMs === 0 ? undefined : now() - behindMs);
      passSeconds.observe({ outcome: 'failed' }, ms / 1000);
    },
    'sync.converged': ({ ms }) => convergenceSeconds.observe(ms / 1000),
    'sync.released': forget,
    // The next leader has them.
    'sync.left': forget,
  };
}

/** A gauge of ages by cluster and side, computed whenever it is asked for. */
function ages({ measured }: Kinds, name: MetricName, now: () => number) {
  const since = new Map<string, Side & { at: number | undefined }>();
  measured(name, ['cluster', 'side'], (it) => {
    for (const { cluster, side, at } of since.values())
      it.set({ cluster, side }, at === undefined ? 0 : Math.max(0, now() - at) / 1000);
  });
  const keyOf = ({ cluster, side }: Side) => `${cluster}/${side}`;
  return {
    /** Sets since when, in ms since 1970; undefined: not at all. */
    set({ cluster, side }: Side, at: number | undefined) {
      since.set(keyOf({ cluster, side }), { cluster, side, at });
    },
    begin({ cluster, side }: Side) {
      const at = since.get(keyOf({ cluster, side }))?.at ?? now();
      since.set(keyOf({ cluster, side }), { cluster, side, at });
    },
    delete: (about: Side) => void since.delete(keyOf(about)),
  };
}
